package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/slackui"
)

type pauseCmd struct {
	DataDir  string `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
	Reason   string `help:"Why; it is recorded and said in the channels."`
	StopRuns bool   `name:"stop-runs" help:"Also stop all runs: open asks are closed, running tools are cancelled."`
}

// Help says what a pause is.
func (pauseCmd) Help() string {
	return `Until approvalbot resume, no run starts, nobody is asked and nothing can be approved; what waits for people can be denied.
Runs go on with what needs no approval, unless --stop-runs ends them. Slack is not needed: the bot is reached by a socket in
its data directory, and if it doesn't run, the pause is recorded and holds from its next start.`
}

func (c pauseCmd) Run(ctx context.Context) error {
	s, err := control(ctx, c.DataDir, "pause", controlOrder{Reason: c.Reason, StopRuns: c.StopRuns})
	if err != nil {
		return err
	}
	s.tellPause(os.Stdout, c.StopRuns, c.DataDir)
	if len(s.Errors) > 0 {
		return errors.New("not all runs were stopped: " + strings.Join(s.Errors, "; "))
	}
	return nil
}

type resumeCmd struct {
	DataDir string `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
}

func (c resumeCmd) Run(ctx context.Context) error {
	s, err := control(ctx, c.DataDir, "resume", controlOrder{})
	if err != nil {
		return err
	}
	s.tellResume(os.Stdout)
	return nil
}

type statusCmd struct {
	DataDir string `name:"data-dir" env:"APPROVALBOT_DATA_DIR" default:"data" type:"path" help:"The data directory of serve or dev (data/dev)."`
}

func (c statusCmd) Run(ctx context.Context) error {
	s, err := control(ctx, c.DataDir, "status", controlOrder{})
	if err != nil {
		return err
	}
	s.tell(os.Stdout)
	return nil
}

// errNoProcess: nobody answers at the socket.
var errNoProcess = errors.New("no process answers")

// A starting process has the journal before it has its socket, and an ending one has it longer.
const (
	controlTries = 10
	controlAgain = 500 * time.Millisecond
)

// control gives an order to the bot of a data directory, or, where none runs, does what can be done in its journal.
func control(ctx context.Context, dataDir, what string, o controlOrder) (*controlState, error) {
	by := operator()
	o.By = controlActor{ID: by.ID, Name: by.Name}
	for try := 1; ; try++ {
		s, err := reach(ctx, dataDir, what, o)
		if !errors.Is(err, errNoProcess) {
			return s, err
		}
		s, err = offline(ctx, dataDir, what, o)
		busy, ok := errors.AsType[*ledger.InUseError](err)
		switch {
		case !ok:
			return s, err
		case try == controlTries:
			return nil, fmt.Errorf("a process has the journal (%w) and doesn't answer on its control socket; stop it, then run this again", busy)
		}
		select {
		case <-time.After(controlAgain):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reach sends an order to a bot that runs. [errNoProcess] says that none does.
func reach(ctx context.Context, dataDir, what string, o controlOrder) (*controlState, error) {
	path, err := controlPath(dataDir)
	if err != nil {
		return nil, errNoProcess // then there can't be a socket either
	}
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
	defer t.CloseIdleConnections()
	method, body := http.MethodPost, []byte(nil)
	if what == "status" {
		method = http.MethodGet
	} else if body, err = json.Marshal(o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*controlWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://approvalbot/"+what, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: t}).Do(req)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR):
		return nil, errNoProcess
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("the bot's control socket %s is another user's: run this as the user that the bot runs as", path)
	case err != nil:
		return nil, fmt.Errorf("the bot's control socket %s: %w", path, err)
	}
	defer resp.Body.Close()
	var s controlState
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&s); err != nil {
		return nil, fmt.Errorf("the bot's answer can't be read (%s): %w", resp.Status, err)
	}
	if s.Error != "" {
		return nil, errors.New(s.Error)
	}
	return &s, nil
}

// offline does in the journal what needs no process. Its lock keeps one from starting meanwhile.
func offline(ctx context.Context, dataDir, what string, o controlOrder) (*controlState, error) {
	dir := filepath.Join(dataDir, "journal")
	reader, err := ledger.OpenReader(ctx, dir)
	if errors.Is(err, ledger.ErrNoJournal) {
		return nil, fmt.Errorf("%w; %s", err, elsewhere(dataDir))
	}
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	s := &controlState{stopped: true}
	if what == "status" {
		return s, s.read(ctx, reader)
	}
	j, err := ledger.Open(ctx, dir, ledger.Options{})
	if err != nil {
		return nil, err
	}
	err = s.record(ctx, j, what, o)
	return s, errors.Join(err, j.Close(), s.read(ctx, reader))
}

// read fills in what a journal alone says.
func (s *controlState) read(ctx context.Context, j *ledger.Reader) error {
	p, paused, err := approvals.ReadPause(ctx, j)
	if err != nil {
		return err
	}
	s.Paused = nil
	if paused {
		s.Paused = sinceOf(p)
	}
	waiting, err := j.WaitingMessages(ctx)
	s.Queued = len(waiting)
	return err
}

// record writes a pause, or its end, where it changes anything.
func (s *controlState) record(ctx context.Context, j *ledger.Ledger, what string, o controlOrder) error {
	p, paused, err := approvals.ReadPause(ctx, j)
	if err != nil || paused == (what == "pause") {
		return err
	}
	e := approvals.PauseEvent(o.By.actor(), o.Reason)
	if what == "resume" {
		e = approvals.ResumeEvent(o.By.actor())
		s.Ended = sinceOf(p)
	}
	_, err = j.Append(ctx, e)
	s.Changed = err == nil
	return err
}

// line says who paused, since when and why; what people wrote is made visible.
func (p *pausedSince) line() string {
	s := fmt.Sprintf("by %s since %s", slackui.VisibleLine(p.By), p.At.UTC().Format("2006-01-02 15:04:05Z"))
	if p.Reason != "" {
		s += ": " + slackui.VisibleLine(p.Reason)
	}
	return s
}

func (s *controlState) tellPause(w io.Writer, stopped bool, dataDir string) {
	if s.Paused == nil { // somebody was faster
		fmt.Fprintln(w, "paused, and resumed by somebody else since")
		return
	}
	if s.Changed {
		fmt.Fprintln(w, "paused: no run starts, nobody is asked, nothing can be approved")
	} else {
		fmt.Fprintln(w, "it was paused already", s.Paused.line())
	}
	switch {
	case s.stopped:
		fmt.Fprintln(w, "no bot runs there: it is recorded, and the next start begins paused")
	case stopped:
		fmt.Fprintf(w, "stopped: %s\n", counted(int64(s.Stopped), "run"))
	case s.Runs > 0:
		fmt.Fprintf(w, "%s not ended and may go on with what needs no approval; --stop-runs ends them\n", countedAre(s.Runs, "run"))
	}
	if s.Asks > 0 && !stopped { // those of runs that are stopped are being closed
		fmt.Fprintf(w, "%s for people; until their time is over they can be denied, not approved\n", countedVerb(s.Asks, "ask", "waits", "wait"))
	}
	fmt.Fprintln(w, "to go on: approvalbot resume"+sameDir(dataDir))
}

// sameDir is the option that a command needs to reach the bot of a data directory, to be put behind it: none where it finds
// that one by itself.
func sameDir(dataDir string) string {
	usual, err := filepath.Abs(cmp.Or(os.Getenv("APPROVALBOT_DATA_DIR"), "data"))
	if asked, e := filepath.Abs(dataDir); err == nil && e == nil && asked == usual {
		return ""
	}
	return " --data-dir " + shellWord(dataDir)
}

// shellWord is text as one word of a command line.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (s *controlState) tellResume(w io.Writer) {
	switch {
	case !s.Changed:
		fmt.Fprintln(w, "it was not paused")
	case s.Ended != nil:
		fmt.Fprintln(w, "resumed; it had been paused", s.Ended.line())
	default:
		fmt.Fprintln(w, "resumed")
	}
	if s.Changed && s.stopped {
		fmt.Fprintln(w, "no bot runs there: it is recorded for the next start")
	}
	if s.Changed && s.Queued > 0 {
		fmt.Fprintf(w, "%s now\n", countedVerb(s.Queued, "queued message", "starts", "start"))
	}
}

func (s *controlState) tell(w io.Writer) {
	fmt.Fprintf(w, "bot: %s\n", map[bool]string{true: "not running", false: "running"}[s.stopped])
	if s.Paused != nil {
		fmt.Fprintln(w, "paused:", s.Paused.line())
	} else {
		fmt.Fprintln(w, "paused: no")
	}
	if !s.stopped {
		fmt.Fprintf(w, "runs: %d\n", s.Runs)
		asks := fmt.Sprint(s.Asks)
		if s.Asks > 0 {
			asks += ", the oldest since " + s.Oldest.UTC().Format("2006-01-02 15:04:05Z")
		}
		fmt.Fprintln(w, "asks that wait for people:", asks)
	}
	fmt.Fprintf(w, "queued messages: %d\n", s.Queued)
	for _, name := range slices.Sorted(maps.Keys(s.Checks)) {
		fmt.Fprintf(w, "%s: %s\n", name, slackui.VisibleLine(s.Checks[name]))
	}
}

// countedAre is a number with its noun and the verb that fits: "1 run has", "2 runs have".
func countedAre(n int, noun string) string { return countedVerb(n, noun, "has", "have") }

func countedVerb(n int, noun, one, many string) string {
	if n == 1 {
		return "1 " + noun + " " + one
	}
	return counted(int64(n), noun) + " " + many
}
