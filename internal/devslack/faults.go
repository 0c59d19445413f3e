package devslack

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is a failure to come. With Method it is one of the Web API: the next
// Times calls of that method ("*" for any) whose arguments contain Match.
// With Socket it is one of the connection:
//
//   - disconnect sends a disconnect frame with Reason (refresh_requested when
//     empty) on every connection, now; Times above 1 does the same to the
//     connections that follow. Reason "too_many_websockets" closes all
//     connections and refuses the next Times; "abrupt" closes without a frame.
//   - ghost registers a connection behind which nobody is: it takes its share
//     of the payloads, Times of them, until the faults are deleted when Times
//     is negative.
//   - duplicate_event delivers the next Times events twice.
//   - lose_click doesn't deliver the next Times clicks.
//   - delay_ack takes notice of the next Times acknowledgements DelayMS later
//     (3.5 s when 0): too late.
//
// Times is 1 when it is 0 and for ever when it is negative.
type Fault struct {
	Method       string `json:"method,omitempty"`
	Times        int    `json:"times,omitempty"`
	Error        string `json:"error,omitempty"`
	Status       int    `json:"status,omitempty"`
	RetryAfter   *int   `json:"retry_after,omitempty"`
	DelayMS      int    `json:"delay_ms,omitempty"`
	DropResponse bool   `json:"drop_response,omitempty"`
	Match        string `json:"match,omitempty"`
	Socket       string `json:"socket,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

const (
	faultDisconnect = "disconnect"
	faultGhost      = "ghost"
	faultDuplicate  = "duplicate_event"
	faultLoseClick  = "lose_click"
	faultDelayAck   = "delay_ack"

	defaultAckDelay = 3500 * time.Millisecond
)

var disconnectReasons = []string{"", "refresh_requested", "warning", "link_disabled", "too_many_websockets", "abrupt"}

// refuses reports whether the call is not carried out. A fault that only
// delays or drops the answer lets it happen.
func (f *Fault) refuses() bool { return f.Error != "" || f.Status != 0 || f.RetryAfter != nil }

func (f *Fault) apiError() error {
	e := &apiError{Code: f.Error, Status: f.Status}
	if f.RetryAfter != nil {
		e.RetryAfter = *f.RetryAfter
		if e.Status == 0 {
			e.Status = http.StatusTooManyRequests
		}
	}
	if e.Code == "" {
		e.Code = "internal_error"
		if e.Status == http.StatusTooManyRequests {
			e.Code = "ratelimited"
		}
	}
	return e
}

// SetFault adds a fault. Faults of one method are used up in the order in
// which they were set.
func (s *Server) SetFault(f Fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	switch f.Socket {
	case "":
		if f.Method == "" {
			return refuse("invalid_fault", "a fault names a method or a socket failure")
		}
		if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
			return refuse("invalid_fault", "status must be an HTTP status of an answer")
		}
	case faultDisconnect:
		if !slices.Contains(disconnectReasons, f.Reason) {
			return refuse("invalid_fault", "unknown reason "+f.Reason)
		}
		if !s.disconnectAll(&f) {
			return nil
		}
	case faultGhost:
		s.addGhost(f.Times)
		return nil
	case faultDuplicate, faultLoseClick, faultDelayAck:
	default:
		return refuse("invalid_fault", "unknown socket failure "+f.Socket)
	}
	s.faults = append(s.faults, &f)
	return nil
}

// ClearFaults removes all faults, ghosts included.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	s.removeGhosts()
}

// takeFault uses up one fault of the call's method.
func (s *Server) takeFault(c *apiCall) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.useFault(func(f *Fault) bool {
		return f.Socket == "" && (f.Method == c.method || f.Method == "*") && f.matches(c.args)
	})
}

func (s *Server) takeSocketFault(kind string) *Fault {
	return s.useFault(func(f *Fault) bool { return f.Socket == kind })
}

func (s *Server) useFault(fits func(*Fault) bool) *Fault {
	i := slices.IndexFunc(s.faults, fits)
	if i < 0 {
		return nil
	}
	f := s.faults[i]
	used := *f
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
	}
	return &used
}

func (f *Fault) matches(a args) bool {
	if f.Match == "" {
		return true
	}
	for _, value := range a {
		if strings.Contains(value, f.Match) {
			return true
		}
	}
	return false
}
