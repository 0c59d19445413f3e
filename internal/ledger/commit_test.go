package ledger_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"approvalbot/internal/ledger"
	"approvalbot/internal/ledger/ledgertest"
)

// Whoever counts is told what became of every append: recorded, lost to another one, or failed. A probe is none.
func TestCommitted(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	var sum ledger.Commit
	told := make(chan ledger.Commit, 16)
	j, err := ledger.Open(ctx, dir, ledger.Options{Logger: slog.New(slog.DiscardHandler), Committed: func(c ledger.Commit) { told <- c }})
	if err != nil {
		t.Fatal(err)
	}
	append1 := func() error {
		_, err := j.Append(ctx, ledger.Event{Run: "run", Actor: ledger.System, Body: &ledger.RunFinished{Status: ledger.RunSucceeded}})
		return err
	}
	take := func() ledger.Commit {
		c := <-told
		sum.Recorded, sum.Conflicts, sum.Failed = sum.Recorded+c.Recorded, sum.Conflicts+c.Conflicts, sum.Failed+c.Failed
		return c
	}
	if err := append1(); err != nil {
		t.Fatal(err)
	}
	if c := take(); c.Recorded != 1 || c.Took <= 0 || c.Err != nil {
		t.Errorf("recorded: %+v", c)
	}
	if _, ok := errors.AsType[*ledger.ConflictError](append1()); !ok {
		t.Fatal("a second end is no conflict")
	}
	if c := take(); c.Conflicts != 1 || c.Err != nil {
		t.Errorf("conflict: %+v", c)
	}
	if err := j.Probe(ctx); err != nil {
		t.Fatal(err)
	}
	take()
	release := ledgertest.Lock(t, dir)
	if err := append1(); !errors.Is(err, ledger.ErrNotRecorded) {
		t.Fatalf("a locked journal: %v", err)
	}
	if c := take(); c.Failed != 1 || c.Err == nil {
		t.Errorf("failed: %+v", c)
	}
	release()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if sum.Recorded != 1 || sum.Conflicts != 1 || sum.Failed != 1 {
		t.Errorf("altogether: %+v", sum)
	}
}
