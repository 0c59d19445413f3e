package mcp

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	maxLogLine = 1000 // characters of a line that a server writes to its standard error
	maxLines   = 100  // of these that are logged in a minute
	keptLines  = 40   // that are remembered, to say why it ended
	maxCause   = 160  // characters of the one that is quoted
)

// A stderr hears what a server's program writes to its standard error. Until the server is up, that is held back. Of a
// server that doesn't come up it is logged for debugging only: what it said last goes into the error, once, instead of a
// stack trace with each try.
type stderr struct {
	log *slog.Logger

	mu   sync.Mutex
	up   bool
	held []func(up bool) // logs a line
	last []string
}

// cameUp says that the server is up.
func (s *stderr) cameUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = true
	s.release()
}

func (s *stderr) release() {
	for _, log := range s.held {
		log(s.up)
	}
	s.held = nil
}

// read logs the lines, as far as they are bearable, and reads on to the end whatever comes, since a server whose output
// nobody reads stops.
func (s *stderr) read(r io.Reader) {
	in := bufio.NewReader(r)
	var since time.Time
	n := 0
	for {
		line, err := in.ReadSlice('\n')
		text := strings.TrimRightFunc(clean(string(line)), unicode.IsSpace)
		for err == bufio.ErrBufferFull { // the rest of an endless line
			_, err = in.ReadSlice('\n')
		}
		if now := time.Now(); now.Sub(since) > time.Minute {
			since, n = now, 0
		}
		if text != "" {
			n++
			s.take(cut(text, maxLogLine), n)
		}
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.release()
			return
		}
	}
}

// take remembers a line and logs it, the n-th of this minute.
func (s *stderr) take(text string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last[max(0, len(s.last)+1-keptLines):], text)
	if n <= maxLines {
		s.held = append(s.held, func(up bool) { s.write(text, n, up) })
	}
	if s.up || len(s.held) > maxLines {
		s.release()
	}
}

func (s *stderr) write(text string, n int, up bool) {
	level, warning := slog.LevelDebug, slog.LevelDebug
	if up {
		level, warning = slog.LevelInfo, slog.LevelWarn
	}
	if n < maxLines {
		s.log.Log(context.Background(), level, "MCP server says", "text", strings.TrimSpace(text))
		return
	}
	s.log.Log(context.Background(), warning, "MCP server says more than is logged; the rest of this minute is left out")
}

// complaint matches a line that says what went wrong; one that is indented belongs to another.
var complaint = regexp.MustCompile(`(?i)^\S.*(?:cannot|can't|could not|not found|no such|denied|invalid)|^\S*(?:error|fatal|panic)|^\S.*\b(?:error|fatal|panic)\b`)

// logHint matches a line that only says where more is written.
var logHint = regexp.MustCompile(`(?i)complete log|for more information|see '?--help`)

// cause is the last line that says what went wrong, or else just the last; empty where there was none.
func (s *stderr) cause() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.last) - 1; i >= 0; i-- {
		if complaint.MatchString(s.last[i]) && !logHint.MatchString(s.last[i]) {
			return cut(short(s.last[i]), maxCause)
		}
	}
	if len(s.last) == 0 {
		return ""
	}
	return cut(short(s.last[len(s.last)-1]), maxCause)
}
