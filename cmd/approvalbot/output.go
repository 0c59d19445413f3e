package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"approvalbot/internal/audit"
)

// styleOf says how to write for people on f: in colours on a terminal, unless they said otherwise (no-color.org).
func styleOf(f *os.File) audit.Style {
	if !term.IsTerminal(int(f.Fd())) {
		return audit.Style{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return audit.Style{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: width}
}

// A progress shows on stderr how far a long reading has come, where a person looks at it.
type progress struct {
	what string
	show bool
	bar  *progressbar.ProgressBar
}

// barFrom is the number of rows from which a bar is worth it.
const barFrom = 20_000

// newProgress makes one; toStdout says that the result goes to stdout, where a terminal would show both in one line.
func newProgress(what string, toStdout bool) *progress {
	show := term.IsTerminal(int(os.Stderr.Fd())) && !(toStdout && term.IsTerminal(int(os.Stdout.Fd())))
	return &progress{what: what, show: show}
}

// rows is a [ledger.VerifyOptions.Progress].
func (p *progress) rows(done, total int64) {
	if !p.show || total < barFrom {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetDescription(p.what),
			progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetWidth(30))
	}
	_ = p.bar.Set64(done) // it only draws
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// writeTo writes a file, whole or not at all; "" is stdout. What was there before stays until the new one is whole.
func writeTo(file string, write func(io.Writer) error) (err error) {
	if file == "" {
		return write(os.Stdout)
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s was not written: %w", file, err), os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// A moment is a point in time on the command line: a date, a date and time, or how long ago.
type moment struct{ time.Time }

// UnmarshalText reads it for the command line.
func (m *moment) UnmarshalText(text []byte) (err error) {
	m.Time, err = parseMoment(string(text), time.Now())
	return err
}

// parseMoment reads a point in time; without a zone it is UTC, as everything that the journal's readers print.
func parseMoment(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.UTC().AddDate(0, 0, -int(n)), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.UTC().Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no point in time: say 2026-03-04, 2026-03-04T09:30:00Z, or how long ago: 90m, 12h, 30d", s)
}
