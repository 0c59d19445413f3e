package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"approvalbot/internal/ledger"
)

// A passing is something that happened to an ask while it waited, besides votes.
type passing struct {
	at   time.Time
	name string
	text string
}

// passed is what happened to an ask while nobody decided, and after it: who was reminded, who was added, how the deadline
// was moved, and that it was asked again.
func passed(c cleaner, a *ledger.Approval) (all []passing) {
	list := func(words []string) string { return cmp.Or(c.named(a, words), "nobody by name") }
	for _, r := range a.Reminded {
		how := "in the thread: "
		if r.Direct {
			how = "by direct message: "
		}
		all = append(all, passing{r.At, "reminded", how + list(r.To)})
	}
	for _, e := range a.Escalated {
		text := fmt.Sprintf("level %d, may approve, too: %s", e.Level, list(e.Approvers))
		if len(e.To) > 0 {
			text += "; by direct message: " + list(e.To)
		}
		all = append(all, passing{e.At, "escalated", text})
	}
	for _, x := range a.Extended {
		all = append(all, passing{x.At, "more time", fmt.Sprintf("until %s by %s", stamp(x.Until), c.who(&x.By))})
	}
	slices.SortStableFunc(all, func(x, y passing) int { return x.at.Compare(y.at) })
	if g := a.AskedAgain; g != nil {
		all = append(all, passing{g.At, "asked again", fmt.Sprintf("by %s, message %d", c.who(&g.By), g.Message)})
	}
	return all
}
