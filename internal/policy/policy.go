// Package policy answers one question: may this tool call run?
//
// It is a pure function of the settings, the rules and the call. It has no clock,
// does no I/O, imports nothing of this program but the words that people read, and
// gives the same decision for the same call every time, which is why a decision can
// be taken again just before an approved call starts, and why the hash of a policy in
// the journal says all that there is to say about it.
//
// # The three answers
//
// [Allow] lets the call run, [Ask] lets people decide, [Deny] ends it. Whatever
// is none of the three (the zero value, a word from a newer version) denies;
// callers branch with [Decision.Allowed] and [Decision.NeedsApproval] and treat
// everything else as no.
//
// # How a decision is made
//
// The checks stand in a fixed order and the first that has an opinion decides:
//
//  1. What can't be judged is denied: a policy that [New] didn't make, a call
//     without a tool name.
//  2. The sandbox mode denies what it rules out: under read_only every tool that
//     isn't known to be read-only.
//  3. The [Rules] that an operator wrote, if any. All that match count, in
//     whatever order they stand, and the most severe effect wins: deny, ask,
//     allow. What a tool's own definition demands ([Call.Ask]) is an ask rule that
//     always matches, so an allow rule doesn't undo it.
//  4. The approval policy decides about the rest: strict asks for every call,
//     on_request for every call that isn't known to be harmless (read-only, not
//     destructive, closed-world), never allows what would have asked. Where the
//     operator wants it ([Policy.WithReadOnlyCommands]), a command that only looks
//     is harmless, too.
//
// A deny stands before the approval policy on purpose: never turns asks of its own
// into allows, and must not get to see a deny. An ask of a rule stands under never,
// too: a rule is the more particular word, and what it asks for is not what never
// was chosen for. An allow of a rule stands under on_request and never, and not
// under strict, which is the promise that people are asked about every call: it
// may be what a request has tightened its run to, and a rule must not undo that.
//
// # What can't be evaluated
//
// A rule's condition can fail: an argument that isn't there, a command that nobody
// could parse, an expression that takes too long. An allow rule that fails does not
// allow. An ask or deny rule that fails counts as if it matched, and its reason
// says so. So no call gets through because something about it is unknown.
//
// # What an ask wants
//
// Several ask rules may match, and each may want something of the ask (a [Wanted]).
// The strictest of everything holds: the highest risk, the largest quorum, the
// shortest timeout, a confirmation if any wants one, and as approvers only those
// whom every list names. Where that leaves nobody, the call is denied: two rules
// that can't both be satisfied are no reason to satisfy one of them. People are
// reminded at the earliest moment that a rule names; to whom it is escalated, and
// when, is what all rules that say who may approve agree about.
//
// # Authority only tightens
//
// The operator's [Settings] are the loosest that holds. A request may ask for
// stricter ones ([Policy.Tighten]); a looser value is a [*WeakerError]. The rules
// stay the operator's: no request adds, changes or removes one.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"approvalbot/internal/language"
)

// Type is the answer of a decision.
type Type string

// The answers. Every other value, "" included, denies.
const (
	Allow Type = "allow"
	Ask   Type = "ask"
	Deny  Type = "deny"
)

// Source names what made a decision.
type Source string

// The sources of a decision.
const (
	SourceApprovalPolicy Source = "approvalPolicy" // strict, on_request or never
	SourceSandboxMode    Source = "sandboxMode"    // the sandbox rules the tool out
	SourceRules          Source = "rules"          // rules of the policy file
	SourceTool           Source = "tool"           // whoever defined the tool wants people to be asked
	SourceInvalid        Source = "invalid"        // the policy or the call can't be judged
)

// Decision is what the policy says about one call. Its zero value denies.
type Decision struct {
	Type   Type   `json:"type"`
	Source Source `json:"source"`
	// Reason is a sentence for people; it stands on the card and in the audit.
	Reason string `json:"reason"`
	// Rule names what decided: the rules, as "rules: four-eyes, no-friday", the
	// setting, as "sandboxMode=read_only", or the tool, as "tool: restart"; empty
	// where the call could not be judged.
	Rule string `json:"rule,omitempty"`

	// Of an ask: what is wanted for it. Zero: what the settings say.
	Wanted
}

// Risk is how much may go wrong with a call, in the words that people see.
type Risk string

// The risks, from the least. "" is none that anybody has named.
const (
	RiskLow      Risk = "low"
	RiskMedium   Risk = "medium"
	RiskHigh     Risk = "high"
	RiskCritical Risk = "critical"
)

// Wanted is what rules, or whoever defined a tool, want for an ask.
type Wanted struct {
	Risk      Risk          `json:"risk,omitempty"`
	Approvers []string      `json:"approvers,omitempty"` // requester, channel, U…, S…; nil: what the settings say
	Quorum    int           `json:"quorum,omitempty"`    // how many different people; 0: what the settings say
	Timeout   time.Duration `json:"timeout,omitempty"`   // to answer; 0: what the settings say
	Confirm   bool          `json:"confirm,omitempty"`   // a click is confirmed once more
	Remind    Remind        `json:"remind,omitzero"`     // those who may approve; zero: what the settings say
	Escalate  []Step        `json:"escalate,omitempty"`  // who may approve, too, when nobody has answered; in order
}

// Allowed reports whether the call may run without asking anybody.
func (d Decision) Allowed() bool { return d.Type == Allow }

// NeedsApproval reports whether people decide about the call.
func (d Decision) NeedsApproval() bool { return d.Type == Ask }

// Denied reports whether the call may not run, which is the case for every
// decision that is neither an allow nor an ask.
func (d Decision) Denied() bool { return !d.Allowed() && !d.NeedsApproval() }

// Call is what a policy may know of a tool call.
//
// The three hints are what the tool says of itself. A caller that doesn't trust
// the tool's author passes the hints of an unknown tool: not read-only,
// destructive, open-world.
type Call struct {
	Tool        string
	Args        json.RawMessage // the canonical arguments
	ReadOnly    bool            // changes nothing
	Destructive bool            // may overwrite or delete, not only add
	OpenWorld   bool            // reaches beyond the workspace

	// What is known of the call besides its arguments. Zero: nothing.
	Programs        []string // of a command, as they stand in it; all of them only if Parsed
	Parsed          bool     // the command was understood whole
	ReadOnlyCommand bool     // one literal command of the short list that only looks
	Path            string   // relative to the workspace, clean
	Host            string   // lower case, without a port

	// Who wants it, where and when. Rules may ask for it.
	Requesters []string // Slack user ids, or "token:NAME", of everyone whose words are in the instructions
	Channel    string   // Slack channel id; empty outside Slack
	Session    string
	Now        time.Time // the caller's clock: the policy has none

	Language language.Language // of the reason, where people are asked; why a call is denied, models read

	Ask    bool   // whoever defined the tool wants people to be asked
	AskWhy string // why, as a clause; empty: they just do
	Wanted Wanted // and this of them
}

// changes reports whether the call may change something. A tool that calls
// itself both read-only and destructive contradicts itself and isn't believed.
func (c Call) changes() bool { return !c.ReadOnly || c.Destructive }

// Policy is a valid pair of settings, and the rules that stand above them. It never
// changes; its zero value and nil deny every call.
type Policy struct {
	settings         Settings
	readOnlyCommands bool   // commands of the short list count as harmless
	rules            *Rules // nil: none
	hash             string // computed once: every decision records it
}

// sealed returns p as it is, with its hash.
func sealed(p Policy) *Policy {
	p.hash = p.sum()
	return &p
}

// New returns the policy for the two settings, or an error that names what
// would be right.
func New(approval ApprovalPolicy, sandbox SandboxMode) (*Policy, error) {
	if _, err := ParseApprovalPolicy(string(approval)); err != nil {
		return nil, err
	}
	if _, err := ParseSandboxMode(string(sandbox)); err != nil {
		return nil, err
	}
	return sealed(Policy{settings: Settings{approval, sandbox}}), nil
}

// WithReadOnlyCommands returns the policy with one thing added: under on_request
// a command of the short list that only looks ([Call].ReadOnlyCommand) is allowed
// without asking. Only an operator may want that, and only of a shell that the
// system keeps to the workspace: a link in it leads wherever it likes.
func (p *Policy) WithReadOnlyCommands() *Policy {
	if p == nil {
		return nil
	}
	with := *p
	with.readOnlyCommands = true
	return sealed(with)
}

// With returns p with these rules in place of those it has; nil is none.
func (p *Policy) With(r *Rules) *Policy {
	if p == nil {
		return nil
	}
	with := *p
	with.rules = r
	return sealed(with)
}

// Current returns p, so that a policy that never changes can stand where one
// that is reloaded is asked for.
func (p *Policy) Current() *Policy { return p }

// Settings returns what the policy was made of.
func (p *Policy) Settings() Settings {
	if p == nil {
		return Settings{}
	}
	return p.settings
}

// Rules returns the rules of the policy, which may be nil.
func (p *Policy) Rules() *Rules {
	if p == nil {
		return nil
	}
	return p.rules
}

// Decide says whether the call may run.
func (p *Policy) Decide(c Call) Decision {
	switch {
	case p == nil || !p.settings.valid():
		return Decision{Type: Deny, Source: SourceInvalid, Reason: "No valid policy is in force, so nothing may run."}
	case c.Tool == "":
		return Decision{Type: Deny, Source: SourceInvalid, Reason: "The call names no tool, so it can't be judged."}
	}
	if p.settings.SandboxMode == ReadOnly && c.changes() {
		return Decision{
			Type:   Deny,
			Source: SourceSandboxMode,
			Reason: fmt.Sprintf("%s can change things, and the sandbox is read_only.", c.Tool),
			Rule:   "sandboxMode=read_only",
		}
	}
	if d, ok := p.rules.decide(&c, p.settings.ApprovalPolicy); ok {
		return d
	}
	c.ReadOnlyCommand = c.ReadOnlyCommand && p.readOnlyCommands
	d := p.settings.ApprovalPolicy.decide(c)
	if d.NeedsApproval() {
		// What the tool's definition wants holds for every ask, whoever asks.
		return d.wanting([]demand{{"the tool " + c.Tool, c.Wanted}})
	}
	return d
}

// Hash is the hex SHA-256 of everything the decisions depend on. Two policies
// with the same hash decide alike. The order of rules in their file, comments and
// the file's own tests don't change it; the text of a condition does, as it is
// written.
func (p *Policy) Hash() string {
	switch {
	case p == nil:
		return (&Policy{}).sum()
	case p.hash == "":
		return p.sum()
	}
	return p.hash
}

func (p *Policy) sum() string {
	version := 1
	if p.rules != nil {
		version = 2
	}
	// Validated words, numbers and texts: marshalling them can't fail, and the order
	// of a struct's fields is fixed.
	content, err := json.Marshal(struct {
		Version        int             `json:"version"`
		ApprovalPolicy ApprovalPolicy  `json:"approvalPolicy"`
		SandboxMode    SandboxMode     `json:"sandboxMode"`
		ReadOnly       bool            `json:"readOnlyCommands,omitempty"`
		Rules          []canonicalRule `json:"rules,omitempty"`
	}{version, p.settings.ApprovalPolicy, p.settings.SandboxMode, p.readOnlyCommands, p.rules.canonical()})
	if err != nil {
		panic("policy: marshalling a policy: " + err.Error())
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Tighten returns a policy at least as strict as p: a setting that the request
// leaves empty stays as it is, a looser one is a [*WeakerError]. The rules stay.
func (p *Policy) Tighten(request Settings) (*Policy, error) {
	if p == nil || !p.settings.valid() {
		return nil, fmt.Errorf("policy: no valid policy is in force that could be tightened")
	}
	s, err := p.settings.Tighten(request)
	if err != nil {
		return nil, err
	}
	tight := *p
	tight.settings = s
	return sealed(tight), nil
}

// decide is the approval policy's answer for a call that nothing has denied.
func (a ApprovalPolicy) decide(c Call) Decision {
	d := Decision{Source: SourceApprovalPolicy, Rule: "approvalPolicy=" + string(a)}
	risk := risk(c)
	switch a {
	case Strict:
		d.Type = Ask
		d.Reason = c.Language.Tf("Every call needs approval (policy strict), %s too.", c.Tool)
		if risk != "" {
			d.Reason = c.Language.Tf("%s %s, and every call needs approval (policy strict).", c.Tool, risk)
		}
	case OnRequest:
		d.Type = Allow
		d.Reason = c.Language.Tf("%s only reads inside the workspace, so it needs no approval (policy on_request).", c.Tool)
		switch {
		case c.ReadOnlyCommand:
			d.Reason = c.Language.Tf("This command of %s only looks, so it needs no approval (policy on_request, read-only commands are allowed).", c.Tool)
		case risk != "":
			d.Type = Ask
			d.Reason = c.Language.Tf("%s %s, so it needs approval (policy on_request).", c.Tool, risk)
		}
	case Never:
		d.Type = Allow
		d.Reason = c.Language.Tf("Nobody is asked about %s (policy never).", c.Tool)
	default:
		d.Type = Deny
		d.Source = SourceInvalid
		d.Reason = fmt.Sprintf("The approval policy %q is unknown, so nothing may run.", string(a))
	}
	return d
}

// risk says in words what makes a call one to ask about; "" if nothing does.
func risk(c Call) string {
	switch {
	case c.changes() && c.OpenWorld:
		return c.Language.T("can change things and reach beyond the workspace")
	case c.changes():
		return c.Language.T("can change things")
	case c.OpenWorld:
		return c.Language.T("reaches beyond the workspace")
	}
	return ""
}
