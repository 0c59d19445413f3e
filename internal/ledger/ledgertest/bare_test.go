package ledgertest

import (
	"context"
	"testing"

	"approvalbot/internal/ledger"
)

func TestTimes(t *testing.T) {
	slow, fast := Times{9e6, 1e6, 5e6}, Times{1e6, 1e6, 100e6, 2e6}
	if m := slow.Median(); m != 5e6 {
		t.Errorf("the median of %v is %v", slow, m)
	}
	if ms := slow.Milliseconds(); ms != 5 {
		t.Errorf("%v ms", ms)
	}
	if over := slow.Over(fast); over != 2.5 {
		t.Errorf("%v over %v is %v", slow, fast, over)
	}
	if slow[0] != 9e6 {
		t.Error("the measurements were changed")
	}
}

func TestGrownJournalVerifies(t *testing.T) {
	j, err := ledger.Open(context.Background(), t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	Grow(t, j)
	if report, err := j.Verify(context.Background(), ledger.VerifyOptions{}); err != nil || !report.OK() {
		t.Errorf("%v %v", report.Problem, err)
	}
	if NewBare(t).Commit() <= 0 {
		t.Error("a commit takes no time")
	}
}
