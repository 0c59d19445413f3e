package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// The control socket is how an operator on the machine reaches a bot that runs: a Unix socket in the data directory that only
// the bot's own user can connect to, with HTTP over it. It needs neither Slack nor a token, so it works while Slack is slow
// or down. Whoever can connect could as well write the journal's file, so what they say of themselves is recorded as it is.
//
// It is made while the journal's lock is held: a socket that lies there is one that a process left behind, and is replaced.

// controlMost is the longest path of a socket that every system takes: 104 bytes on macOS, with the end.
const controlMost = 100

// controlPath is where the socket of a data directory is: in it, or, where that path is too long for a socket, in the
// system's directory for temporary files, under a name that is computed from it.
func controlPath(dataDir string) (string, error) {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return "", err
	}
	if path := filepath.Join(dir, "control", "socket"); len(path) <= controlMost {
		return path, nil
	}
	sum := sha256.Sum256([]byte(dir))
	path := filepath.Join(os.TempDir(), fmt.Sprintf("approvalbot-%d-%s", ownerOf(dir), hex.EncodeToString(sum[:6])), "socket")
	if len(path) > controlMost {
		return "", fmt.Errorf("the paths of the data directory (%s) and of the system's temporary directory are too long for a socket", dir)
	}
	return path, nil
}

// ownerOf is the user whose directory it is: the bot's, also for root who looks for its socket.
func ownerOf(dir string) int {
	if info, err := os.Stat(dir); err == nil {
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(s.Uid)
		}
	}
	return os.Getuid()
}

// listenControl makes the socket. The caller holds the journal's lock.
func listenControl(dataDir string) (net.Listener, error) {
	path, err := controlPath(dataDir)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if err := ownDirectory(dir); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != os.ModeSocket {
			return nil, fmt.Errorf("%s is in the way: it is no socket", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("the socket that an earlier process left can't be removed: %w", err)
		}
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the control socket can't be made: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("the control socket can't be kept from others: %w", err), ln.Close())
	}
	return ln, nil
}

// ownDirectory makes a directory that only we can enter, or makes sure that it is one.
func ownDirectory(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("the directory of the control socket can't be made: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("the directory of the control socket: %w", err)
	}
	switch s, ok := info.Sys().(*syscall.Stat_t); {
	case !info.IsDir() || !ok || int(s.Uid) != os.Getuid():
		return fmt.Errorf("%s is not a directory of our own", dir)
	case info.Mode().Perm()&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("%s can be entered by others: %w", dir, err)
		}
	}
	return nil
}

// An order is what an operator wants.
type controlOrder struct {
	By       controlActor `json:"by"`
	Reason   string       `json:"reason,omitempty"`
	StopRuns bool         `json:"stopRuns,omitempty"`
}

type controlActor struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

func (a controlActor) actor() ledger.Actor {
	return ledger.Actor{Kind: ledger.ActorOperator, ID: a.ID, Name: a.Name, Via: "command line"}
}

// A controlState is how the bot is, and what became of an order.
type controlState struct {
	Paused  *pausedSince      `json:"paused,omitempty"`
	Changed bool              `json:"changed,omitempty"` // the order did it; else it was so before
	Ended   *pausedSince      `json:"ended,omitempty"`   // the pause that resume ended
	Runs    int               `json:"runs"`              // that have not ended
	Queued  int               `json:"queued"`            // messages that wait for their turn
	Asks    int               `json:"asks"`              // that wait for people
	Oldest  time.Time         `json:"oldest,omitzero"`
	Checks  map[string]string `json:"checks,omitempty"`  // as in /readyz
	Stopped int               `json:"stopped,omitempty"` // runs, by this order
	Errors  []string          `json:"errors,omitempty"`  // what could not be stopped, and why
	Error   string            `json:"error,omitempty"`   // why the order was not carried out

	stopped bool // no process runs there; this is what the journal says
}

type pausedSince struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

func sinceOf(p approvals.Pause) *pausedSince {
	return &pausedSince{By: p.By.DisplayName(), At: p.At, Reason: p.Reason}
}

// controlWithin is how long one order may take.
const controlWithin = 30 * time.Second

// serveControl answers on the socket until ctx ends.
func (a *app) serveControl(ctx context.Context) error {
	if a.control == nil {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { a.answerControl(w, r, nil) })
	mux.HandleFunc("POST /pause", func(w http.ResponseWriter, r *http.Request) { a.answerControl(w, r, a.pauseOrder) })
	mux.HandleFunc("POST /resume", func(w http.ResponseWriter, r *http.Request) { a.answerControl(w, r, a.resumeOrder) })
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * controlWithin}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(a.control); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
		a.log.Error("the control socket doesn't answer any more; approvalbot pause can't reach this process", "error", err)
	}
	return nil
}

// answerControl carries out an order and says how the bot is then.
func (a *app) answerControl(w http.ResponseWriter, r *http.Request, do func(context.Context, controlOrder, *controlState) error) {
	ctx, cancel := context.WithTimeout(r.Context(), controlWithin)
	defer cancel()
	var state controlState
	status := http.StatusOK
	if do != nil {
		var o controlOrder
		dec := json.NewDecoder(io.LimitReader(r.Body, 64<<10))
		dec.DisallowUnknownFields()
		err := dec.Decode(&o)
		if err == nil {
			err = do(ctx, o, &state)
		}
		if err != nil {
			status, state.Error = http.StatusServiceUnavailable, err.Error()
		}
	}
	a.describe(ctx, &state)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(state); err != nil {
		a.log.Warn("an order of the command line was carried out and could not be answered", "error", err)
	}
}

func (a *app) pauseOrder(ctx context.Context, o controlOrder, s *controlState) error {
	_, before, err := a.approvals.Pause(ctx, o.By.actor(), o.Reason)
	if err != nil {
		return err
	}
	s.Changed = !before
	if o.StopRuns {
		a.stopRuns(ctx, o.By.actor(), s)
	}
	return nil
}

func (a *app) resumeOrder(ctx context.Context, o controlOrder, s *controlState) error {
	ended, was, err := a.approvals.Resume(ctx, o.By.actor())
	if err == nil && was {
		s.Changed, s.Ended = true, sinceOf(ended)
	}
	return err
}

// stopRuns ends all runs, and notes those that it could not end.
func (a *app) stopRuns(ctx context.Context, by ledger.Actor, s *controlState) {
	runs, err := a.journal.UnfinishedRuns(ctx)
	if err != nil {
		s.Errors = append(s.Errors, "the runs could not be listed: "+err.Error())
	}
	for _, run := range runs {
		switch err := a.agent.Stop(ctx, run, by); {
		case err == nil:
			s.Stopped++
		default:
			s.Errors = append(s.Errors, run+": "+err.Error())
		}
	}
}

// describe says how the bot is.
func (a *app) describe(ctx context.Context, s *controlState) {
	if p, paused := a.approvals.Paused(); paused {
		s.Paused = sinceOf(p)
	}
	runs, err := a.journal.UnfinishedRuns(ctx)
	if err == nil {
		s.Runs = len(runs)
	}
	if waiting, err := a.journal.WaitingMessages(ctx); err == nil {
		s.Queued = len(waiting)
	}
	s.Asks, s.Oldest = a.approvals.Waiting()
	s.Checks = map[string]string{}
	for _, c := range a.checks() {
		s.Checks[c.Name] = "ok"
		if err := c.Err(); err != nil {
			s.Checks[c.Name] = err.Error()
		}
	}
}
