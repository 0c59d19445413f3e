package audit

import (
	"time"

	"approvalbot/internal/ledger"
)

// lanesMost is how many calls the picture has; more can't be told apart.
const lanesMost = 40

// lanes are the picture of the run: one line for the model, one for each call, from the start to the end.
func (b builder) lanes() (lanes []lane, span string) {
	run, end := b.r.Run, b.end()
	total := end.Sub(run.StartedAt)
	if run.Started == nil || total <= 0 || len(run.Rounds) == 0 {
		return nil, ""
	}
	lanes = append(lanes, lane{Name: "model", Segments: b.thinking(total)})
	for i, c := range run.Calls {
		if i == lanesMost {
			lanes = append(lanes, lane{Name: count(len(run.Calls)-i, "more call", "more calls")})
			break
		}
		lanes = append(lanes, lane{Name: b.short(c.Name, 24), Title: b.line(c.ID), Tone: stateTone(c.State), Segments: b.stretch(c, total)})
	}
	return lanes, took(total)
}

// thinking is when the model was asked: from the start or the end of a round's calls to the next answer.
func (b builder) thinking(total time.Duration) (all []segment) {
	from := b.r.Run.StartedAt
	for _, r := range b.r.Run.Rounds {
		all = append(all, b.segment(from, r.At, total, "model", "the model answers"))
		from = r.At
		for _, c := range b.r.Run.Calls {
			if c.Round == r.Round {
				from = later(from, c.FinishedAt)
			}
		}
	}
	return all
}

// stretch is when a call waited for people, and when it ran.
func (b builder) stretch(c *ledger.Call, total time.Duration) (all []segment) {
	if a := c.Approval; a != nil {
		to := a.ResolvedAt
		if a.Resolved == nil {
			to = b.end()
		}
		all = append(all, b.segment(a.At, to, total, "wait", "waits for people"))
	}
	if !c.StartedAt.IsZero() {
		to := c.FinishedAt
		if c.Finished == nil {
			to = b.end()
		}
		all = append(all, b.segment(c.StartedAt, to, total, "work "+stateTone(c.State), "runs"))
	}
	if c.Finished != nil && c.StartedAt.IsZero() {
		all = append(all, b.segment(c.FinishedAt, c.FinishedAt, total, "work "+stateTone(c.State), "ends without having run"))
	}
	return all
}

// segment places a stretch of time; the shortest can still be seen.
func (b builder) segment(from, to time.Time, total time.Duration, kind, what string) segment {
	const least = 5
	scale := 1000 / total.Seconds()
	s := segment{X: from.Sub(b.r.Run.StartedAt).Seconds() * scale, Width: to.Sub(from).Seconds() * scale, Kind: kind, Title: what + ": " + took(to.Sub(from))}
	s.Width = max(s.Width, least)
	s.X = max(min(s.X, 1000-s.Width), 0)
	return s
}
