package agent

import (
	"cmp"
	"fmt"
	"slices"

	"approvalbot/internal/ledger"
)

// The guards against loops. Both look at the journal only, after a round's results are committed.
const (
	maxRepeats = 4 // identical calls with an identical result
	maxDenials = 3 // denials by people with no approval between
)

// guard returns the end of a run that goes in circles, nil for one that may go on.
func guard(state *ledger.Run) *ledger.RunFinished {
	if c := repeated(state); c != nil {
		return &ledger.RunFinished{Status: ledger.RunFailed, Code: codeRepeated,
			Reason: fmt.Sprintf("%s was called %d times with the same arguments and the same result.", c.Name, maxRepeats)}
	}
	if denials(state) >= maxDenials {
		return &ledger.RunFinished{Status: ledger.RunCancelled, Code: codeDenied,
			Reason: fmt.Sprintf("people denied %d requests in a row", maxDenials),
			Answer: fmt.Sprintf("%d requests in a row were denied, so I stopped. What should I do instead?", maxDenials)}
	}
	return nil
}

func repeated(state *ledger.Run) *ledger.Call {
	type what struct {
		tool, args, output string
		state              ledger.CallState
	}
	count := map[what]int{}
	for _, c := range state.Calls {
		if c.Finished == nil {
			continue
		}
		forms := digests(c) // the same bytes in another spelling are the same call
		if len(forms) == 0 {
			forms = []string{c.Arguments}
		}
		for _, form := range forms {
			w := what{c.Name, form, c.Finished.Output, c.State}
			if count[w]++; count[w] >= maxRepeats {
				return c
			}
		}
	}
	return nil
}

// denials counts the denials by people since the last approval, in journal order.
func denials(state *ledger.Run) int {
	var resolved []*ledger.Approval
	for _, c := range state.Calls {
		if a := c.Approval; a != nil && a.Resolved != nil && a.Resolved.Source == ledger.SourceUser {
			resolved = append(resolved, a)
		}
	}
	slices.SortFunc(resolved, func(a, b *ledger.Approval) int { return cmp.Compare(a.ResolvedSeq, b.ResolvedSeq) })
	n := 0
	for _, a := range resolved {
		if n++; a.Resolved.Type == ledger.Approved {
			n = 0
		}
	}
	return n
}
