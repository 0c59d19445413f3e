package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// What rules want to happen while nobody answers: when those who may approve are reminded, and who else may when they
// don't.
//
// Of several reminders the earliest holds. Escalation lets more people approve, so rules have to agree about it: somebody
// is added from the moment at which every rule that says who may approve (by approvers or escalate) has them in it, and
// not at all if one of them never does.

// A Remind says when those who may approve are reminded. The zero value says nothing.
type Remind struct {
	Part  int           `json:"part,omitempty"`  // percent of the time that people have
	After time.Duration `json:"after,omitempty"` // from the first showing
	Never bool          `json:"never,omitempty"`
}

// A Step is one step of an escalation: from then on these may approve, too.
type Step struct {
	After     time.Duration `json:"after"` // from the first showing
	Approvers []string      `json:"approvers"`
}

// String is how one writes it in a rule.
func (r Remind) String() string {
	var all []string
	if r.Part > 0 {
		all = append(all, strconv.Itoa(r.Part)+"%")
	}
	if r.After > 0 {
		all = append(all, Brief(r.After))
	}
	if len(all) == 0 && r.Never {
		return "0%"
	}
	return strings.Join(all, " or ")
}

// earlier is the earlier of two reminders. A part and a time can be compared only when it is known how much time people
// have, so both are kept.
func earlier(a, b Remind) Remind {
	least := func(x, y int64) int64 {
		if x == 0 || y != 0 && y < x {
			return y
		}
		return x
	}
	r := Remind{Part: int(least(int64(a.Part), int64(b.Part))), After: time.Duration(least(int64(a.After), int64(b.After)))}
	r.Never = (a.Never || b.Never) && r == Remind{}
	return r
}

// escalation merges the steps of demands, given the approvers that they come to.
func escalation(demands []demand, approvers []string) []Step {
	var words []string
	for _, d := range demands {
		for _, s := range d.want.Escalate {
			words = append(words, s.Approvers...)
		}
	}
	slices.Sort(words)
	from := map[time.Duration][]string{}
	for _, word := range slices.Compact(words) {
		if slices.Contains(approvers, word) {
			continue
		}
		if at, ok := agreed(demands, word); ok {
			from[at] = append(from[at], word)
		}
	}
	var steps []Step
	for at, who := range from {
		steps = append(steps, Step{at, who})
	}
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.After, b.After) })
	return steps
}

// agreed is from when on everybody who has a say lets somebody approve.
func agreed(demands []demand, word string) (from time.Duration, ok bool) {
	for _, d := range demands {
		if d.want.Approvers == nil && d.want.Escalate == nil || slices.Contains(d.want.Approvers, word) {
			continue
		}
		i := slices.IndexFunc(d.want.Escalate, func(s Step) bool { return slices.Contains(s.Approvers, word) })
		if i < 0 {
			return 0, false
		}
		from = max(from, d.want.Escalate[i].After)
	}
	return from, true
}

const remindForms = "it has to be a part of the time, such as 50% (0%: never), or a duration from 1s to 168h, such as 10m"

func (l *loader) remind(n *yaml.Node) Remind {
	value := aliased(n).Value
	if part, percent := strings.CutSuffix(strings.TrimSpace(value), "%"); percent {
		p, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || p < 0 || p > 99 {
			l.wrong(n, "remind is %q: %s", value, remindForms)
		}
		return Remind{Part: p, Never: p == 0}
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Second || d > maxTimeout {
		l.wrong(n, "remind is %q: %s", value, remindForms)
	}
	return Remind{After: d}
}

// maxSteps is how many steps an escalation may have: every one mentions people.
const maxSteps = 5

func (l *loader) escalate(n *yaml.Node) (steps []Step) {
	var before time.Duration
	for _, entry := range l.list(n, "escalate", maxSteps) {
		m := l.mapping(entry, "a step of escalate", []string{"after", "approvers"})
		if m == nil {
			continue
		}
		var s Step
		if after, ok := l.required(entry, m, "after", "a step of escalate"); ok {
			problems := len(l.problems)
			s.After = l.durationOf(after, "after")
			if len(l.problems) == problems && s.After <= before {
				l.wrong(after, "after is %s: each step has to come later than the one before, which comes after %s", s.After, before)
			}
			before = max(before, s.After)
		}
		if who, ok := l.required(entry, m, "approvers", "a step of escalate"); ok {
			s.Approvers = l.approvers(who)
			for _, word := range s.Approvers {
				if word == "requester" || word == "channel" {
					l.wrong(who, "%s can't be escalated to: a step names people (U…) or user groups (S…)", word)
				}
			}
		}
		steps = append(steps, s)
	}
	return steps
}

// inTime checks that what a rule wants to happen while nobody answers can happen: before its own time is over.
func (l *loader) inTime(m map[string]*yaml.Node, w Wanted) {
	if n := m["escalate"]; n != nil && aliased(n).Kind == yaml.SequenceNode && len(aliased(n).Content) == 0 { // a test may expect that
		l.wrong(n, "escalate is empty: leave it out where nobody else may approve")
	}
	if w.Timeout <= 0 {
		return
	}
	if w.Remind.After >= w.Timeout {
		l.wrong(m["remind"], "remind is %s, and the time is over after %s (timeout)", w.Remind.After, w.Timeout)
	}
	if n := len(w.Escalate); n > 0 && w.Escalate[n-1].After >= w.Timeout {
		l.wrong(m["escalate"], "a step of escalate comes after %s, and the time is over after %s (timeout)", w.Escalate[n-1].After, w.Timeout)
	}
}

// String says the step in a few words.
func (s Step) String() string {
	return strings.Join(s.Approvers, ",") + " after " + Brief(s.After)
}

// Brief is a duration without its zeros: 30m, not 30m0s.
func Brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
