package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"approvalbot/internal/devslack"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/rapidtest"
)

// The property test of the whole program: whatever people, models, Slack, the disk and the machine do, in any order,
// what design and documents promise holds when everything has come to rest.
//
// A plan is drawn first and played then, in a bubble of its own, so that a failure prints what happened and can be made
// smaller. property_play_test.go plays a plan, property_check_test.go says what has to hold.

// propertyChecks is how many plans a usual run of the tests plays: about 20 seconds with the race detector on two busy
// cores. -rapid.checks=N plays more.
const propertyChecks = 16

func TestProperty(t *testing.T) {
	rapidtest.Checks(t, propertyChecks)
	reached := tally{}
	defer func() { t.Logf("what the plans reached:\n%s", reached) }()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPlan(rt)
		if failures := play(t, p, reached); failures != "" {
			rt.Fatalf("%s\n%s", p, failures)
		}
	})
}

// A tally counts what happened in all trials: plans that never get anywhere would prove nothing.
type tally map[string]int

func (a tally) add(runs map[string]*ledger.Run) {
	for _, run := range runs {
		a["run "+string(run.Finished.Status)+" "+run.Finished.Code]++
		for _, c := range run.Calls {
			a["call "+string(c.State)+" "+string(c.Finished.Source)+c.Finished.Code]++
			if c.Decision != nil && c.Decision.Grant != "" {
				a["call allowed by a grant"]++
			}
			if c.Approval != nil {
				a["card "+endingWords(c)]++
				a.moves(c.Approval)
			}
		}
	}
}

// moves counts what happened to an ask besides its end.
func (a tally) moves(of *ledger.Approval) {
	a["ask reminded"] += len(of.Reminded)
	a["ask escalated"] += len(of.Escalated)
	a["ask given more time"] += len(of.Extended)
	a["ask changed"] += len(of.Amended)
	a["ask stands elsewhere"] += len(of.Elsewhere)
	if of.AskedAgain != nil {
		a["ask asked again"]++
	}
	if of.Resolved.Granted != nil {
		a["ask with a grant"]++
	}
}

func (a tally) String() string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(a)) {
		fmt.Fprintf(&b, "%6d %s\n", a[what], what)
	}
	return b.String()
}

// A plan is everything that is decided before a trial begins.
type plan struct {
	policy    policy.ApprovalPolicy
	sandbox   policy.SandboxMode
	approvers []string
	quorum    int
	timeout   time.Duration
	drain     time.Duration
	tasks     []task // what each message makes the model do
	channel   string // the approvals channel: none, also, only
	sets      bool   // the asks of a round stand together
	rules     string // what a policy file says of commands; a key of planRules
	remind    int
	moreTime  time.Duration
	grantors  bool
	language  language.Language
	answer    string // what people say to what is left at the end: approve, deny or nothing
	steps     []step
}

// A task is a script of the model: its rounds of calls, and how it ends.
type task struct {
	rounds [][]callKind
	ending string // text, error, hang
}

// A callKind is a call that the model makes.
type callKind string

const (
	callRead    callKind = "read"    // allowed, unless everybody is asked about everything
	callShell   callKind = "shell"   // asked about; leaves a mark
	callFail    callKind = "fail"    // leaves a mark and fails
	callSlow    callKind = "slow"    // leaves a mark and takes a moment
	callWrite   callKind = "write"   // asked about
	callUnknown callKind = "unknown" // no such tool
	callInvalid callKind = "invalid" // arguments that are no JSON
	callNoID    callKind = "no id"   // leaves a mark; the provider gave no id
	callAgain   callKind = "again"   // the first command of the task once more
)

// A step is something that happens. Numbers that select something are taken modulo what there is.
type step struct {
	what string
	n    int           // which message, card, fault
	who  int           // which person
	flag bool          // a variant
	wait time.Duration // what passes after it; negative: nothing, the next step happens at the same time
}

func (s step) String() string {
	return fmt.Sprintf("%s(n=%d who=%d flag=%t wait=%s)", s.what, s.n, s.who, s.flag, s.wait)
}

func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy=%s sandbox=%s approvers=%v quorum=%d timeout=%s drain=%s channel=%s sets=%t, %q at the end\n",
		p.policy, p.sandbox, p.approvers, p.quorum, p.timeout, p.drain, p.channel, p.sets, p.answer)
	fmt.Fprintf(&b, "rules=%q remind=%d moreTime=%s grantors=%t language=%s\n", p.rules, p.remind, p.moreTime, p.grantors, p.language)
	for i, t := range p.tasks {
		fmt.Fprintf(&b, "task %d: %v then %s\n", i, t.rounds, t.ending)
	}
	for i, s := range p.steps {
		fmt.Fprintf(&b, "step %d: %s\n", i, s)
	}
	return b.String()
}

func drawPlan(t *rapid.T) plan {
	return plan{
		policy:    rapid.SampledFrom([]policy.ApprovalPolicy{policy.OnRequest, policy.OnRequest, policy.OnRequest, policy.OnRequest, policy.Strict, policy.Never}).Draw(t, "policy"),
		sandbox:   rapid.SampledFrom([]policy.SandboxMode{policy.WorkspaceWrite, policy.WorkspaceWrite, policy.WorkspaceWrite, policy.WorkspaceWrite, policy.WorkspaceWrite, policy.ReadOnly}).Draw(t, "sandbox"),
		approvers: rapid.SampledFrom([][]string{{"channel", "requester"}, {"channel", "requester"}, {"channel"}, {"carol"}}).Draw(t, "approvers"),
		quorum:    rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "quorum"),
		timeout:   rapid.SampledFrom([]time.Duration{20 * time.Second, 2 * time.Minute, time.Hour, time.Hour}).Draw(t, "timeout"),
		drain:     rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second}).Draw(t, "drain"),
		channel:   rapid.SampledFrom([]string{"none", "none", "also", "also", "only"}).Draw(t, "channel"),
		sets:      rapid.SampledFrom([]bool{false, true}).Draw(t, "sets"),
		rules:     rapid.SampledFrom([]string{"", "", "ladder", "critical"}).Draw(t, "rules"),
		remind:    rapid.SampledFrom([]int{0, 50}).Draw(t, "remind"),
		moreTime:  rapid.SampledFrom([]time.Duration{0, 30 * time.Second, time.Hour}).Draw(t, "moreTime"),
		grantors:  rapid.Bool().Draw(t, "grantors"),
		language:  rapid.SampledFrom([]language.Language{language.English, language.English, language.Chinese}).Draw(t, "language"),
		answer:    rapid.SampledFrom([]string{"approve", "approve", "deny", ""}).Draw(t, "answer"),
		tasks:     rapid.SliceOfN(rapid.Custom(drawTask), 1, 3).Draw(t, "tasks"),
		steps:     rapid.SliceOfN(rapid.Custom(drawStep), 6, 30).Draw(t, "steps"),
	}
}

// planRules are what a policy file of a plan says; the names of people stand for their ids.
var planRules = map[string]string{
	"ladder": `rules:
- name: ladder
  tool: shell
  effect: ask
  remind: 5s
  escalate:
  - {after: 8s, approvers: [bob]}
  - {after: 12s, approvers: [carol, gus]}
`,
	"critical": "rules:\n- {name: grave, tool: shell, effect: ask, risk: critical}\n",
}

func drawTask(t *rapid.T) task {
	kinds := []callKind{callShell, callShell, callShell, callRead, callFail, callSlow, callWrite, callUnknown, callInvalid, callNoID, callAgain}
	round := rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 3)
	return task{
		rounds: rapid.SliceOfN(round, 1, 3).Draw(t, "rounds"),
		ending: rapid.SampledFrom([]string{"text", "text", "text", "text", "error", "hang"}).Draw(t, "ending"),
	}
}

func drawStep(t *rapid.T) step {
	s := step{what: rapid.SampledFrom(allSteps).Draw(t, "what")}
	s.n = rapid.IntRange(0, 11).Draw(t, "n")
	s.who = rapid.IntRange(0, len(clickers)-1).Draw(t, "who")
	s.flag = rapid.Bool().Draw(t, "flag")
	s.wait = rapid.SampledFrom([]time.Duration{
		-1, -1, 0, 0, 100 * time.Millisecond, time.Second, 3 * time.Second, 5 * time.Second, 30 * time.Second, 3 * time.Minute,
	}).Draw(t, "wait")
	return s
}

// allSteps names each step as often as it is to happen; property_play_test.go says what they do.
var allSteps = strings.Fields(`
	message message message message message remark
	approve approve approve approve approve approve approve approve approve approve approve approve
	deny deny deny midway midway all all
	more_time more_time deny_reason edit edit grant_thread ask_again ask_again
	pause resume resume command word home
	forged stop pass pass
	crash crashAt crashAt crashAt crashAt crashAt crashAt sigterm start start start
	fault fault fault fault fault clear
	unwritable unwritableAt unwritableEvents writable`)

// The people who may click, those who may come first.
var clickers = []string{"bob", "carol", "alice", "bob", "carol", "bob", "carol", "bob", "carol", "gus", "erin", "deploybot"}

// faults are what can go wrong between us and Slack, and pass again.
func faults() []devslack.Fault {
	two := 2
	return []devslack.Fault{
		{Method: "chat.postMessage", Times: 1, DropResponse: true},
		{Method: "chat.postMessage", Times: 1, DropResponse: true, Match: "approve"},
		{Method: "chat.postMessage", Times: 2, DelayMS: 4000},
		{Method: "chat.postMessage", Times: 2, DelayMS: 15000}, // longer than we wait
		{Method: "chat.postMessage", Times: 3, RetryAfter: &two},
		{Method: "chat.postMessage", Times: 2, Status: 503},
		{Method: "chat.postMessage", Times: 1, DropResponse: true, Match: `"kind":"copy"`},
		{Method: "chat.postMessage", Times: 1, Error: "is_archived", Match: `"kind":"copy"`},
		{Method: "chat.postMessage", Times: 1, DropResponse: true, Match: `"kind":"set"`},
		{Method: "chat.postMessage", Times: 1, DropResponse: true, Match: `"kind":"nudge"`},
		{Method: "chat.postMessage", Times: 1, DropResponse: true, Match: `"kind":"notice"`},
		{Method: "conversations.open", Times: 1, Error: "cannot_dm_bot"},
		{Method: "conversations.open", Times: 2, Status: 503},
		{Method: "views.open", Times: 1, Error: "expired_trigger_id"},
		{Method: "views.publish", Times: 2, Status: 429},
		{Method: "chat.postMessage", Times: 1, Error: "restricted_action", Match: "approve"},
		{Method: "chat.update", Times: 2, DropResponse: true},
		{Method: "chat.update", Times: 2, DelayMS: 12000},
		{Method: "chat.update", Times: 4, Status: 500},
		{Method: "chat.update", Times: 4, Status: 429, Error: "ratelimited"},
		{Method: "conversations.replies", Times: 2, Status: 502},
		{Method: "users.info", Times: 2, Error: "internal_error"},
		{Method: "chat.postEphemeral", Times: 2, Status: 500},
		{Socket: "disconnect", Reason: "refresh_requested"},
		{Socket: "disconnect", Reason: "abrupt"},
		{Socket: "duplicate_event", Times: 3},
		{Socket: "lose_click", Times: 1},
		{Socket: "delay_ack", Times: 1},
	}
}
