package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Rule is one statement of an operator about some calls. [Load] reads and checks
// it; it never changes afterwards.
type Rule struct {
	Name   string   // unique in its file
	Tools  []string // names, or globs with * and ?
	When   string   // the condition, CEL; empty: always
	Effect Type
	Reason string // for the card and the audit; may be empty
	Wanted        // Risk of every effect, the rest of an ask only
	Line   int    // where it stands in its file

	when *expression // of When; nil: always
}

// Rules are the rules of a file. They never change; nil is none.
type Rules struct {
	list []Rule // in the file's order, which is for reading only
}

// List returns the rules in the order of their file.
func (r *Rules) List() []Rule {
	if r == nil {
		return nil
	}
	return slices.Clone(r.list)
}

// Len is how many rules there are.
func (r *Rules) Len() int {
	if r == nil {
		return 0
	}
	return len(r.list)
}

// A canonicalRule is what a rule means, for the hash.
type canonicalRule struct {
	Name      string        `json:"name"`
	Tools     []string      `json:"tools"` // sorted
	When      string        `json:"when,omitempty"`
	Effect    Type          `json:"effect"`
	Reason    string        `json:"reason,omitempty"`
	Risk      Risk          `json:"risk,omitempty"`
	Approvers []string      `json:"approvers,omitempty"` // sorted
	Quorum    int           `json:"quorum,omitempty"`
	Timeout   time.Duration `json:"timeout,omitempty"`
	Confirm   bool          `json:"confirm,omitempty"`
	Remind    *Remind       `json:"remind,omitempty"`
	Escalate  []Step        `json:"escalate,omitempty"` // approvers sorted
}

func (r *Rules) canonical() []canonicalRule {
	if r == nil {
		return nil
	}
	all := make([]canonicalRule, len(r.list))
	for i, rule := range r.list {
		all[i] = canonicalRule{
			rule.Name, sorted(rule.Tools), rule.When, rule.Effect, rule.Reason,
			rule.Risk, sorted(rule.Approvers), rule.Quorum, rule.Timeout, rule.Confirm, nil, nil,
		}
		if rule.Remind != (Remind{}) {
			all[i].Remind = &rule.Remind
		}
		for _, s := range rule.Escalate {
			all[i].Escalate = append(all[i].Escalate, Step{s.After, sorted(s.Approvers)})
		}
	}
	slices.SortFunc(all, func(a, b canonicalRule) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// severity orders the effects; 0 is none of them.
func severity(t Type) int {
	switch t {
	case Allow:
		return 1
	case Ask:
		return 2
	case Deny:
		return 3
	}
	return 0
}

// A hit is a rule that counts for a call.
type hit struct {
	rule *Rule
	err  error // it counts because it could not be evaluated
}

// decide is the answer of the rules, and of what the tool's definition demands; false
// if they have none. A nil receiver has no rules.
func (r *Rules) decide(c *Call, mode ApprovalPolicy) (Decision, bool) {
	var hits []hit
	best := 0
	if c.Ask {
		best = severity(Ask)
	}
	if mode == Strict {
		best = max(best, severity(Allow)+1) // an allow doesn't count; see the package comment
	}
	in := input{call: c}
	for i := range r.Len() {
		rule := &r.list[i]
		if severity(rule.Effect) < best || !rule.covers(c.Tool) {
			continue // whatever it says of the call, it isn't what decides
		}
		matched, err := rule.matches(&in)
		if !matched {
			continue
		}
		if s := severity(rule.Effect); s > best {
			best, hits = s, hits[:0]
		}
		hits = append(hits, hit{rule, err})
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Compare(a.rule.Name, b.rule.Name) })
	switch {
	case len(hits) > 0 && hits[0].rule.Effect == Ask, len(hits) == 0 && c.Ask:
		return ask(c, hits), true
	case len(hits) > 0:
		return verdict(c, hits), true
	}
	return Decision{}, false
}

// verdict is the decision of rules that allow or deny.
func verdict(c *Call, hits []hit) Decision {
	d := Decision{Type: hits[0].rule.Effect, Source: SourceRules, Rule: ruleNames(hits), Reason: reasons(c, hits)}
	for _, h := range hits {
		d.Risk = riskier(d.Risk, h.rule.Risk)
	}
	return d
}

// ask is the decision of rules that ask, and of a tool that wants people to be asked.
func ask(c *Call, hits []hit) Decision {
	d := Decision{Type: Ask, Source: SourceRules, Rule: ruleNames(hits), Reason: reasons(c, hits)}
	switch {
	case c.Ask && len(hits) == 0:
		d.Source, d.Rule = SourceTool, "tool: "+c.Tool
		d.Reason = c.Language.Tf("Every call of %s asks people first: %s.", c.Tool, c.askWhy())
	case c.Ask:
		d.Rule += "; tool: " + c.Tool
	}
	demands := make([]demand, 0, len(hits)+1)
	for _, h := range hits {
		demands = append(demands, demand{"the rule " + h.rule.Name, h.rule.Wanted})
	}
	return d.wanting(append(demands, demand{"the tool " + c.Tool, c.Wanted}))
}

func ruleNames(hits []hit) string {
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.rule.Name
	}
	return "rules: " + strings.Join(names, ", ")
}

// reasons are the sentences of the rules, each once.
func reasons(c *Call, hits []hit) string {
	var all []string
	for _, h := range hits {
		if s := h.reason(c); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, " ")
}

func (h hit) reason(c *Call) string {
	r := h.rule
	if h.err != nil {
		does := "asks about it"
		if r.Effect == Deny {
			does = "denies it"
		}
		// What it means comes first: where it is shown there may be no room for the rest.
		why := fmt.Sprintf("The rule %s %s, because it could not be evaluated: %s", r.Name, does, shortened(h.err.Error()))
		if !strings.HasSuffix(why, "…") {
			why += "."
		}
		return strings.TrimSpace(why + " " + r.sentence())
	}
	if r.Reason != "" {
		return r.sentence()
	}
	switch r.Effect {
	case Allow:
		return c.Language.Tf("The rule %s allows this call of %s.", r.Name, c.Tool)
	case Deny:
		return fmt.Sprintf("The rule %s denies this call of %s.", r.Name, c.Tool)
	}
	return c.Language.Tf("The rule %s asks about this call of %s.", r.Name, c.Tool)
}

// askWhy is why the tool wants people to be asked, as a clause.
func (c *Call) askWhy() string {
	if c.AskWhy == "" {
		return c.Language.T("that is how it was defined")
	}
	return c.Language.Recorded(c.AskWhy)
}

// sentence is the rule's reason with an end.
func (r *Rule) sentence() string {
	if r.Reason == "" || strings.ContainsAny(r.Reason[len(r.Reason)-1:], ".!?") {
		return r.Reason
	}
	return r.Reason + "."
}

// maxDetail is how much of an error stands in a reason: it may quote arguments.
const maxDetail = 160

func shortened(s string) string {
	if utf8.RuneCountInString(s) <= maxDetail {
		return s
	}
	return string([]rune(s)[:maxDetail]) + "…"
}

// Covers tells whether the rule is about the tool of that name.
func (r Rule) Covers(tool string) bool { return r.covers(tool) }

// Arguments are the arguments that the rule's condition names.
func (r Rule) Arguments() []string {
	if r.when == nil {
		return nil
	}
	return slices.Clone(r.when.arguments)
}

// covers tells whether the rule is about the tool.
func (r *Rule) covers(tool string) bool {
	for _, pattern := range r.Tools {
		if globs(pattern, tool) {
			return true
		}
	}
	return false
}

// globs tells whether a name fits a pattern, in which * is any text and ? any
// character. It goes back to the last * only, so it takes no more than the product of
// the two lengths.
func globs(pattern, name string) bool {
	p, n, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// matches tells whether the rule counts for the call. An error with true is why it
// counts although nobody knows; with false, why it doesn't.
//
// A condition that asks for the requester is asked about each of them. An ask or deny
// holds if it holds for one of them, an allow only if it holds for all: one person's
// words among the instructions are enough to make a call theirs.
func (r *Rule) matches(in *input) (bool, error) {
	if r.when == nil {
		return true, nil
	}
	all := r.Effect == Allow
	in.allows = all
	people := in.call.Requesters
	if !r.when.perRequester || len(people) == 0 {
		people = nobody
	}
	var failed error
	for _, who := range people {
		in.requester = who
		is, err := r.when.eval(in)
		switch {
		case err != nil:
			failed = err
		case is != all:
			return is, nil
		}
	}
	if failed != nil {
		return !all, failed
	}
	return all, nil
}

// nobody is the requester where there is none, or where it doesn't matter who.
var nobody = []string{""}

// An Outcome is what a rule has to do with a call.
type Outcome string

// The outcomes.
const (
	Matches    Outcome = "matches"
	NotMatched Outcome = "does not match" // its condition is false
	OtherTool  Outcome = "another tool"
	Failed     Outcome = "failed" // its condition could not be evaluated
)

// A Finding is what one rule says of a call.
type Finding struct {
	Rule    Rule
	Outcome Outcome
	Err     error // of Failed
	// Counts tells whether it is among the rules that decide, if none is more severe.
	Counts bool
}

// Explain says what the policy decides, and what each rule says of the call, in the
// order of their file.
func (p *Policy) Explain(c Call) (Decision, []Finding) {
	in := input{call: &c}
	var findings []Finding
	for _, rule := range p.Rules().List() {
		f := Finding{Rule: rule, Outcome: OtherTool}
		if rule.covers(c.Tool) {
			matched, err := rule.matches(&in)
			f.Counts, f.Err, f.Outcome = matched, err, NotMatched
			switch {
			case err != nil:
				f.Outcome = Failed
			case matched:
				f.Outcome = Matches
			}
		}
		findings = append(findings, f)
	}
	return p.Decide(c), findings
}
