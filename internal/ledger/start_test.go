package ledger

import (
	"database/sql"
	"errors"
	"testing"
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
