package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// risks in their order: a risk's place is how much of one it is.
var risks = []Risk{"", RiskLow, RiskMedium, RiskHigh, RiskCritical}

// riskier is the greater of two risks. A word that isn't one of them is taken for the
// greatest: nobody can say that it is less.
func riskier(a, b Risk) Risk {
	i, j := slices.Index(risks, a), slices.Index(risks, b)
	if i < 0 || j < 0 {
		return RiskCritical
	}
	return risks[max(i, j)]
}

// A demand is what somebody wants of an ask.
type demand struct {
	who  string // "the rule four-eyes"
	want Wanted
}

// wanting returns an ask with the strictest of everything that is wanted for it, or, if
// nobody could approve it then, a deny that says why.
func (d Decision) wanting(demands []demand) Decision {
	w, who := strictest(demands)
	switch {
	case w.Approvers == nil:
	case len(w.Approvers) == 0:
		d.Type = Deny
		d.Reason = fmt.Sprintf("Nobody could approve this: %s want different approvers, and no entry is in every list. Change them so that they have one in common.", inWords(who))
	case usersOnly(w.Approvers) && len(w.Approvers) < w.Quorum:
		d.Type = Deny
		d.Reason = fmt.Sprintf("Nobody could approve this: %d different people have to, and %s leave only %s.", w.Quorum, inWords(who), strings.Join(w.Approvers, ", "))
	}
	if d.Type == Deny {
		w = Wanted{Risk: w.Risk}
	}
	d.Wanted = w
	return d
}

// strictest merges demands, and names those that had a say in the approvers.
func strictest(demands []demand) (w Wanted, who []string) {
	for _, d := range demands {
		w.Risk = riskier(w.Risk, d.want.Risk)
		w.Quorum = max(w.Quorum, d.want.Quorum)
		w.Confirm = w.Confirm || d.want.Confirm
		w.Remind = earlier(w.Remind, d.want.Remind)
		if d.want.Timeout > 0 && (w.Timeout == 0 || d.want.Timeout < w.Timeout) {
			w.Timeout = d.want.Timeout
		}
		if d.want.Approvers == nil {
			continue
		}
		who = append(who, d.who)
		list := sorted(d.want.Approvers)
		if w.Approvers != nil {
			list = slices.DeleteFunc(list, func(a string) bool { return !slices.Contains(w.Approvers, a) })
		}
		w.Approvers = slices.Compact(list)
	}
	w.Escalate = escalation(demands, w.Approvers)
	return w, who
}

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{1,30}$`)
)

// approver tells whether a word has the form of an entry in a list of approvers.
func approver(word string) bool {
	return word == "requester" || word == "channel" || userID.MatchString(word) || groupID.MatchString(word)
}

// usersOnly tells whether every entry is one person, so that they can be counted.
func usersOnly(approvers []string) bool {
	return !slices.ContainsFunc(approvers, func(a string) bool { return !userID.MatchString(a) })
}

// inWords joins names: "a", "a and b", "a, b and c".
func inWords(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
