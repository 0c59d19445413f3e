package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"approvalbot/internal/agent"
	"approvalbot/internal/devslack"
	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

// livingRuns are a process's runs as it lives through them.
type livingRuns struct {
	done sync.WaitGroup
	runs map[string]*ledger.Run
	last int64
}

// follow reads along until the journal is closed.
func follow(j *ledger.Ledger) *livingRuns {
	l := &livingRuns{runs: map[string]*ledger.Run{}}
	l.done.Go(func() {
		for e, err := range j.Follow(context.Background(), 0) {
			if err != nil {
				return
			}
			l.last = e.Seq
			fold(l.runs, e)
		}
	})
	return l
}

func fold(runs map[string]*ledger.Run, e ledger.Event) {
	if e.Run == "" {
		return
	}
	if runs[e.Run] == nil {
		runs[e.Run] = &ledger.Run{}
	}
	runs[e.Run].Apply(e)
}

// compare holds what the process had against what the journal says.
func (l *livingRuns) compare(t testing.TB, journal []ledger.Event) {
	l.done.Wait()
	replayed := map[string]*ledger.Run{}
	for _, e := range journal {
		if e.Seq <= l.last {
			fold(replayed, e)
		}
	}
	if diff := cmp.Diff(replayed, l.runs, cmpopts.IgnoreUnexported(ledger.Run{})); diff != "" {
		t.Errorf("the journal replayed isn't what the process lived through:\n%s", diff)
	}
}

// compareAsks holds the pending approvals in memory against the journal, while everybody waits. A journal that failed
// may be ahead of memory, or a run be halted whose end can't be written yet.
func (r *trial) compareAsks() {
	r.buried()
	if r.end == nil || r.strained {
		return
	}
	replayed, open := map[string]*ledger.Run{}, map[string]*ledger.Approval{}
	for _, e := range r.everything() {
		fold(replayed, e)
	}
	for _, run := range replayed {
		for _, c := range run.Calls {
			if c.Approval.Open() {
				open[c.Approval.ApprovalRequested.Approval] = c.Approval
			}
		}
	}
	pending := map[string]*ledger.Approval{}
	for _, s := range r.app.approvals.Pending("") {
		pending[s.ID] = &s.Ask
	}
	if diff := cmp.Diff(open, pending, cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("the pending approvals of the journal and of memory differ:\n%s", diff)
	}
}

// verify checks everything that has to hold at rest, and that a further start finds nothing to do.
func (r *trial) verify() map[string]*ledger.Run {
	r.world.check()
	events := r.everything()
	runs := map[string]*ledger.Run{}
	for _, e := range events {
		fold(runs, e)
	}
	r.checkStarts(events)
	r.checkMarks(runs)
	r.checkTranscripts(events)
	r.checkMessages(runs)
	for _, run := range runs {
		if !run.Settled {
			r.t.Errorf("run %s is not settled in Slack: %v", run.ID, run.Posted)
		}
		for _, c := range run.Calls {
			r.checkCall(run, c)
		}
	}
	r.begin()
	r.pass(10 * time.Minute)
	r.over()
	more := slices.DeleteFunc(r.everything()[len(events):], func(e ledger.Event) bool { return e.Kind() == "policy_changed" })
	if len(more) > 0 { // which rules a process has is written at its start
		r.t.Errorf("a start after everything had come to rest wrote %d more rows, the last: %+v", len(more), more[len(more)-1])
	}
	r.checkMessages(runs)
	return runs
}

// checkStarts goes through the journal: a call starts once, and only after it was allowed or approved, with the bytes
// that were decided on and shown.
func (r *trial) checkStarts(events []ledger.Event) {
	type call struct{ run, id string }
	allowed, approved, started := map[call]string{}, map[call]string{}, map[call]bool{}
	asked, voters := map[call]*ledger.ApprovalRequested{}, map[call]map[string]bool{}
	for _, e := range events {
		c := call{e.Run, e.Call}
		switch b := e.Body.(type) {
		case *ledger.PermissionDecided:
			if b.Type == ledger.Allow {
				allowed[c] = b.Digest
			}
		case *ledger.ApprovalRequested:
			asked[c], voters[c] = b, map[string]bool{}
			if sum := sha256.Sum256([]byte(b.Arguments)); hex.EncodeToString(sum[:]) != b.Digest {
				r.t.Errorf("row %d: the digest isn't that of the arguments", e.Seq)
			}
		case *ledger.ApprovalVoted:
			if b.Type == ledger.Approved {
				voters[c][e.Actor.ID] = r.mayApprove(e.Actor, asked[c])
			}
		case *ledger.ApprovalResolved:
			if b.Type == ledger.Approved && b.Source == ledger.SourceUser {
				approved[c] = asked[c].Digest
			}
		case *ledger.ApprovalAmended: // a new question, to which nobody has said anything
			changed := *asked[c]
			changed.Digest, changed.Arguments, changed.Approvers = b.Digest, b.Arguments, b.Approvers
			asked[c], voters[c] = &changed, map[string]bool{}
			if sum := sha256.Sum256([]byte(b.Arguments)); hex.EncodeToString(sum[:]) != b.Digest {
				r.t.Errorf("row %d: the digest isn't that of the arguments", e.Seq)
			}
		case *ledger.ApprovalEscalated:
			changed := *asked[c]
			changed.Approvers = slices.Concat(changed.Approvers, b.Approvers)
			asked[c] = &changed
		case *ledger.ToolStarted:
			if started[c] {
				r.t.Errorf("row %d: %v starts again", e.Seq, c)
			}
			started[c] = true
			if b.Digest != allowed[c] && b.Digest != approved[c] {
				r.t.Errorf("row %d: %v starts with bytes that nobody allowed", e.Seq, c)
			}
		}
	}
	for c := range approved {
		if n := len(voters[c]); n < r.plan.quorum {
			r.t.Errorf("%v was approved by %d people, not by %d", c, n, r.plan.quorum)
		}
		for who, may := range voters[c] {
			if !may {
				r.t.Errorf("%v was approved by %s, who may not", c, who)
			}
		}
	}
}

func (r *trial) mayApprove(by ledger.Actor, a *ledger.ApprovalRequested) bool {
	members := []string{"alice", "bob", "carol"}
	if r.plan.channel == "only" && a.Only {
		members = []string{"alice", "bob"} // of the approvals channel
	}
	own := slices.Contains(a.Requesters, by.Person())
	if own {
		return slices.Contains(a.Approvers, "requester") && !slices.Contains(r.ids([]string{"gus", "erin", "deploybot"}), by.ID)
	}
	listed := slices.Contains(a.Approvers, by.ID) && slices.Contains(r.ids([]string{"alice", "bob", "carol"}), by.ID)
	full := slices.ContainsFunc(members, func(name string) bool { return r.user(name) == by.ID })
	return listed || full && slices.Contains(a.Approvers, "channel")
}

// checkMarks counts from outside what was really performed.
func (r *trial) checkMarks(runs map[string]*ledger.Run) {
	least, most := map[string]int{}, map[string]int{}
	for _, run := range runs {
		for _, c := range run.Calls {
			mark := markOf(c)
			if mark == "" || c.StartedAt.IsZero() {
				continue
			}
			most[mark]++
			if f := c.Finished; f != nil && f.Code != "ABORTED" && f.Code != "OUTCOME_UNKNOWN" {
				least[mark]++
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "workspace", "mark-*"))
	if err != nil {
		r.t.Fatal(err)
	}
	marks := map[string]int{}
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			r.t.Fatal(err)
		}
		marks[filepath.Base(f)] = len(content)
		if n := len(content); n > most[filepath.Base(f)] {
			r.t.Errorf("%s was made %d times, started %d times", filepath.Base(f), n, most[filepath.Base(f)])
		}
	}
	for mark, n := range least {
		if marks[mark] < n {
			r.t.Errorf("%s was performed %d times and made %d times", mark, n, marks[mark])
		}
	}
}

// markOf is the file that a call's command writes an x to; empty if it writes none.
func markOf(c *ledger.Call) string {
	var args struct{ Command string }
	arguments := c.Arguments
	if c.Approval != nil {
		arguments = c.Approval.Arguments
	}
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return ""
	}
	_, rest, _ := strings.Cut(args.Command, ">> ")
	mark, _, _ := strings.Cut(rest, ";")
	return mark
}

// checkTranscripts folds every session: each request to a model can be computed again, each call has one result.
func (r *trial) checkTranscripts(events []ledger.Event) {
	sessions := map[string][]ledger.Event{}
	for _, e := range events {
		sessions[e.Session] = append(sessions[e.Session], e)
	}
	for _, of := range sessions {
		for _, e := range of {
			if b, ok := e.Body.(*ledger.ModelCompleted); ok {
				t := r.transcript(of, b.SampledFrom)
				if got := model.RequestHash(t.Request()); got != b.RequestHash {
					r.t.Errorf("row %d: the request hash is %s, computed again %s", e.Seq, b.RequestHash, got)
				}
			}
		}
		t := r.transcript(of, of[len(of)-1].Seq)
		if !t.Complete() {
			r.t.Errorf("a transcript is not complete: %+v", t.Request().Messages)
		}
		r.checkPairs(t.Request().Messages)
	}
}

func (r *trial) transcript(events []ledger.Event, until int64) *agent.Transcript {
	t := &agent.Transcript{}
	for _, e := range events {
		if e.Seq > until {
			break
		}
		if err := t.Apply(e); err != nil {
			r.t.Fatal(err)
		}
	}
	return t
}

// checkPairs: after a message with calls comes one with exactly their results, in order.
func (r *trial) checkPairs(messages []model.Message) {
	var open []string
	for _, m := range messages {
		var results []string
		for _, res := range m.Results {
			results = append(results, res.ToolCallID)
		}
		if !slices.Equal(open, results) {
			r.t.Errorf("calls %q have the results %q", open, results)
		}
		open = nil
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		r.t.Errorf("the calls %q have no results", open)
	}
}

// checkMessages: each thing stands in Slack once, and what the journal knows to stand there does.
func (r *trial) checkMessages(runs map[string]*ledger.Run) {
	stands := map[ledger.Thing]string{}
	for _, kind := range []string{"card", "copy", "set", "progress", "answer", "nudge", "notice"} {
		for _, m := range r.posted(kind) {
			thing := ledger.Thing{Kind: kind, ID: m.id}
			if stands[thing] != "" {
				r.t.Errorf("%v stands in Slack twice: %s", thing, m.text)
			}
			stands[thing] = m.ts
		}
	}
	for _, run := range runs {
		for _, p := range run.Posted {
			if p.Gone == "" && stands[p.Thing] != p.TS {
				r.t.Errorf("%v of run %s stands at %q, the journal says %q", p.Thing, run.ID, stands[p.Thing], p.TS)
			}
		}
	}
}

// The words of which a card that is over has exactly one.
var endings = []string{
	"Done in", "It failed", "but not performed", "Stopped while it was running", "Outcome unknown",
	"Denied by", "obody answered", "The run was stopped", "Nobody could be asked",
}

// checkCall: the card says what the journal says of the call.
func (r *trial) checkCall(run *ledger.Run, c *ledger.Call) {
	if c.State == ledger.OutputDenied && !c.StartedAt.IsZero() {
		r.t.Errorf("%s was denied and started", c.ID)
	}
	a := c.Approval
	if a == nil {
		return
	}
	n, id := 0, a.ApprovalRequested.Approval
	again := a.AskedAgain == nil && (a.Resolved.Source == ledger.SourceTimeout || a.Resolved.Source == ledger.SourceAbort)
	for _, m := range r.asking() {
		said, found := sayings(m.raw, r.plan.language.Tf("Request %d", a.Seq)+" ")
		if !found {
			continue
		}
		n++
		var ends []string
		for _, words := range endings {
			if strings.Contains(said, words) {
				ends = append(ends, words)
			}
		}
		left := slices.DeleteFunc(slices.Clone(m.choices), func(b choice) bool {
			// Of what is settled the button goes beside the journal; where that was cut short, whoever clicks it is told.
			return b.action == "ask_again" && (b.value != id || again || r.harmed && a.AskedAgain != nil)
		})
		if want := endingWords(c); r.plan.language == language.English && !slices.Equal(ends, []string{want}) || len(left) > 0 {
			r.t.Errorf("the %s says %q with buttons %v, want %q:\n%s", m.kind, ends, left, want, said)
		}
		if res := a.Resolved; res.By != nil && !strings.Contains(said, res.By.ID) {
			r.t.Errorf("the %s doesn't say that it was %s:\n%s", m.kind, res.By.ID, said)
		}
	}
	if n == 0 && (len(a.Shown) > 0 || a.Resolved.Source != ledger.SourceAbort && !r.refused(run, a)) {
		r.t.Errorf("the ask about %s stands nowhere", c.ID)
	}
	if want := 1 + len(a.Elsewhere); n > want {
		r.t.Errorf("the ask about %s stands in %d messages, want %d at most", c.ID, n, want)
	}
	for _, s := range a.Shown {
		if !slices.ContainsFunc(r.asking(), func(m posted) bool { return m.channel == s.Channel && m.ts == s.TS }) {
			r.t.Errorf("the ask about %s was shown in %s %s, where nothing stands", c.ID, s.Channel, s.TS)
		}
	}
}

// sayings are the words of the part of a message that is about one ask: what stands in front of the small print that names
// it, up to the part before.
func sayings(m devslack.Message, name string) (string, bool) {
	var blocks []json.RawMessage
	_ = json.Unmarshal(m.Blocks, &blocks)
	said := ""
	for _, b := range blocks {
		var kind struct{ Type string }
		_ = json.Unmarshal(b, &kind)
		switch {
		case kind.Type == "context" && strings.Contains(strings.Join(texts(b), "\n")+" ", name):
			return said, true
		case kind.Type == "context", kind.Type == "divider":
			said = ""
		default:
			said += strings.Join(texts(b), "") + "\n"
		}
	}
	return "", false
}

// refused tells whether Slack didn't take the card.
func (r *trial) refused(run *ledger.Run, a *ledger.Approval) bool {
	return slices.ContainsFunc(run.Posted, func(p ledger.Posted) bool {
		return strings.HasPrefix(p.Thing.ID, a.ApprovalRequested.Approval) && p.Gone != "" || p.Thing.Kind == "set" && p.Gone != ""
	})
}

// endingWords are what a card has to say, from the journal alone.
func endingWords(c *ledger.Call) string {
	res, f := c.Approval.Resolved, c.Finished
	switch {
	case res.Type == ledger.Denied && res.Source == ledger.SourceUser:
		return "Denied by"
	case res.Type == ledger.Denied && res.Source == ledger.SourceTimeout:
		return "obody answered"
	case res.Type == ledger.Denied && res.Source == ledger.SourceUndeliverable:
		return "Nobody could be asked"
	case res.Type == ledger.Denied:
		return "The run was stopped"
	case f.State == ledger.OutputDenied:
		return "but not performed"
	case f.State == ledger.OutputAvailable:
		return "Done in"
	case f.Code == "ABORTED":
		return "Stopped while it was running"
	case f.Code == "OUTCOME_UNKNOWN":
		return "Outcome unknown"
	}
	return "It failed"
}
