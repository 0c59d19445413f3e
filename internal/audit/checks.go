package audit

import (
	"context"
	"iter"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/slackui"
)

// Checks compute again what the chain of hashes doesn't cover: what models were sent and what Slack confirmed. Their Event
// is a [ledger.VerifyOptions.Check].
type Checks struct {
	Requests   agent.Recheck
	Renderings slackui.Recheck
}

// NewChecks makes the checks for a journal, which they read again where they have forgotten something.
func NewChecks(ctx context.Context, j *ledger.Reader) *Checks {
	return &Checks{Requests: agent.Recheck{Read: func(session string, until int64) iter.Seq2[ledger.Event, error] {
		return j.Read(ctx, 0, ledger.Filter{Session: session, Until: until})
	}}}
}

// Event takes the next event. An error says that the event doesn't fit the ones before.
func (c *Checks) Event(e ledger.Event) error {
	if err := c.Requests.Event(e); err != nil {
		return err
	}
	return c.Renderings.Event(e)
}
