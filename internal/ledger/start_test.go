package ledger

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"modernc.org/sqlite"
)

// What was changed at the end of a journal is found when it is opened: going on would build on it.
func TestOpenChecksWhatTheChainDoesNotShow(t *testing.T) {
	for name, change := range map[string]string{
		"the claims are gone":      `DELETE FROM claims`,
		"one claim is gone":        `DELETE FROM claims WHERE scope = 'run_end'`,
		"a claim too many":         `INSERT INTO claims SELECT 'start', 'r', 'c9', '', '', max(seq) FROM events`,
		"a body was changed":       `UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'succeeded', 'cancelled') AS BLOB) WHERE kind = 'run_finished'`,
		"the last row was cut":     `DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)`,
		"nothing that matters (c)": ``,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := Open(t.Context(), dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range []Body{&RunStarted{}, &RunFinished{Status: RunSucceeded}} {
				if _, err := l.Append(t.Context(), Event{Session: "s", Run: "r", Actor: System, Body: b}); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", journalFile(dir))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(change); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := Open(t.Context(), dir, Options{})
			if change == "" {
				if err != nil {
					t.Fatal(err)
				}
				again.Close()
				return
			}
			if _, damaged := errors.AsType[*DamagedError](err); !damaged {
				t.Errorf("opened with %v", err)
			}
		})
	}
}

// What a follower was given can be read: whoever is told of an event and looks it up finds it. The database shows a row a
// moment before the writer says so; a follower must not be that moment ahead.
func TestWhatFollowGivesReadGives(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var events []Event
	for range 2 {
		e, err := l.Append(t.Context(), Event{Session: "s", Run: "r", Actor: System, Body: &RunStopRequested{}})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e...)
	}
	first := newNews(Head{Seq: events[0].Seq, Hash: events[0].Hash}) // both rows are there, and only this one is news
	r, err := newReader(t.Context(), dir, sqlite.NewConnector, first)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range r.Follow(ctx, 0) {
		if errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for again, err := range r.Read(t.Context(), e.Seq-1, Filter{Until: e.Seq}) {
			found = err == nil && again.Seq == e.Seq
		}
		if !found {
			t.Errorf("event %d was given to a follower and can't be read", e.Seq)
		}
		cancel()
	}
}
