package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"approvalbot/internal/ledger"
)

// used says what samples took: "12000 tokens in (8000 from the cache), 345 out, 0.081234 USD".
func used(u ledger.Usage) string {
	s := fmt.Sprintf("%s in", count(u.InputTokens, "token", "tokens"))
	switch {
	case u.CacheReadTokens > 0 && u.CacheWriteTokens > 0:
		s += fmt.Sprintf(" (%d from the cache, %d into it)", u.CacheReadTokens, u.CacheWriteTokens)
	case u.CacheReadTokens > 0:
		s += fmt.Sprintf(" (%d from the cache)", u.CacheReadTokens)
	case u.CacheWriteTokens > 0:
		s += fmt.Sprintf(" (%d into the cache)", u.CacheWriteTokens)
	}
	s += fmt.Sprintf(", %d out", u.OutputTokens)
	if c := u.Cost; c != nil {
		s += fmt.Sprintf(", %d.%06d %s", c.Micros/1e6, c.Micros%1e6, c.Currency)
	}
	return s
}

// failed says of an attempt to sample the model how it went and what followed.
func (c cleaner) failed(f *ledger.ModelFailed) string {
	what := "the model gave no answer"
	if f.Summary != nil {
		what = "the model gave no summary"
	}
	s := fmt.Sprintf("%s in round %d, attempt %d (%s): %s", what, f.Round, f.Attempt, c.line(cmp.Or(f.ErrorKind, "of no known kind")), c.line(f.Message))
	if f.RetryIn > 0 {
		return s + " Asked again after " + took(f.RetryIn)
	}
	return s
}

// compacted says how a session was shortened.
func compacted(s *ledger.SessionCompacted) string {
	if s.Method == ledger.CompactSummary {
		return fmt.Sprintf("what came before row %d is summarised for the model", s.Until+1)
	}
	return fmt.Sprintf("outputs of tools before row %d are cut for the model, to %d characters each", s.Until+1, s.Clip)
}

// sampling writes what became of the samples of a run that weren't usual.
func (p *printer) sampling(run *ledger.Run) {
	if u := run.Usage(); u.Tokens() > 0 {
		p.field(0, "used", plainText, used(u))
	}
	for _, f := range run.Failures {
		p.field(0, "model", bad, stamp(f.At)+" "+p.failed(f.ModelFailed))
	}
	for _, c := range run.Compacted {
		p.field(0, "compacted", plainText, stamp(c.At)+" "+compacted(c.SessionCompacted))
	}
}

// A moment is an item of the timeline with its place in the journal.
type moment struct {
	seq int64
	item
}

// moments are what happened between a run's start and its end, in the journal's order.
func (b builder) moments() []item {
	run := b.r.Run
	var all []moment
	for _, r := range run.Rounds {
		all = append(all, moment{r.Seq, b.round(r)})
	}
	for _, f := range run.Failures {
		it := b.at(f.At, "stop", fmt.Sprintf("Round %d: no answer of the model, attempt %d", f.Round, f.Attempt))
		it.Text = b.long(b.failed(f.ModelFailed))
		all = append(all, moment{f.Seq, it})
	}
	for _, c := range run.Compacted {
		it := b.at(c.At, "round", "The session is compacted: "+compacted(c.SessionCompacted))
		it.Text = b.long(c.Text)
		if c.Usage.Tokens() > 0 {
			it.Facts = append(it.Facts, pair{"used", used(c.Usage)})
		}
		all = append(all, moment{c.Seq, it})
	}
	if run.Stop != nil {
		all = append(all, moment{run.Stop.Seq, b.stop()})
	}
	slices.SortStableFunc(all, func(x, y moment) int { return cmp.Compare(x.seq, y.seq) })
	items := make([]item, len(all))
	for i, m := range all {
		items[i] = m.item
	}
	return items
}

func (b builder) at(t time.Time, kind, title string) item {
	return item{At: clock(t), Since: b.since(t), Kind: kind, Title: title}
}
