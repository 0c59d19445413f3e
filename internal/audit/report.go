package audit

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/redact"
)

// textMost is how many characters of one text the page has. A tool can print megabytes; the export has all of it.
const textMost = 100_000

//go:embed report.html
var reportHTML string

//go:embed report.css
var reportCSS string

var reportTemplate = template.Must(template.New("report").Parse(reportHTML))

// Report writes a run as one page of HTML that needs nothing else: no script, no font, no connection. Text that others
// wrote is text there, whatever is in it.
func Report(w io.Writer, r *Reading, red *redact.Redactor) error {
	b := builder{cleaner{red, r.Names}, r}
	return reportTemplate.Execute(w, b.page())
}

// A page is everything that stands in the report, ready to be shown.
type page struct {
	Style  template.CSS
	Policy string // of the browser: this style and nothing else

	Run, Title, Request, Status, Tone string
	Erased                            string
	Facts                             []pair // in a few words, on top
	Lanes                             []lane
	Span                              string // how long the lanes are
	Items                             []item
	Answer                            string
	Messages                          []posted
	Transcript                        []spoken
	Record                            []pair
	System                            string
}

type pair struct{ Name, Value string }

// A lane is one line of the picture: who was busy when.
type lane struct {
	Name, Tone string
	Title      string
	Segments   []segment
}

// A segment is a stretch of a lane, in thousandths of the run.
type segment struct {
	X, Width float64
	Kind     string // model, wait, work
	Title    string
}

// An item is one thing on the timeline.
type item struct {
	At, Since, Kind, Title, Text string
	Facts                        []pair
	Calls                        []called
}

// A called is one tool call.
type called struct {
	ID, Tool, What, State, Tone string
	Provider                    string
	Steps                       []step
	End                         []pair // state, source, code, reason: the same as everywhere
	Seen                        bool
	NoModel                     bool // the action was another program's own
	Ended                       bool
	Arguments, Digest           string
	Preview, PreviewKind        string
	Notes                       []string // what stood under it
	Output                      string
	HasOutput                   bool
}

// A step is one thing that happened to a call.
type step struct{ At, Name, Tone, Text, Took string }

type posted struct{ Kind, ID, Where, State string }

type spoken struct{ Role, Text string }

// A builder makes the page of a reading.
type builder struct {
	cleaner
	r *Reading
}

func (b builder) page() page {
	run := b.r.Run
	sum := sha256.Sum256([]byte(reportCSS))
	p := page{
		Style: template.CSS(reportCSS), Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'",
		Run: b.line(run.ID), Title: b.short(b.r.request(), 80), Request: b.long(b.r.request()),
		Status: strings.ReplaceAll(string(run.Status()), "_", " "), Tone: statusTone(run.Status()), Erased: b.r.erased(b.cleaner),
		Facts: b.facts(), Items: b.items(), Messages: b.messages(), Transcript: b.transcript(b.r.Transcript.Request()), Record: b.record(),
	}
	if p.Title == "" {
		p.Title = "Run " + p.Run
	}
	p.Lanes, p.Span = b.lanes()
	if f := run.Finished; f != nil {
		p.Answer = b.long(strings.TrimSpace(f.Answer))
		if f.Truncated {
			p.Answer += "\n[cut off: the model reached the limit of what it may write at once]"
		}
	}
	if run.Started != nil {
		p.System = b.long(run.Started.System)
	}
	return p
}

func (b builder) why(f *ledger.RunFinished) string {
	if f.Code == "" {
		return f.Reason
	}
	return f.Code + ": " + f.Reason
}

func (b builder) long(s string) string { return b.beginning(s, textMost) }

func statusTone(s ledger.RunStatus) string {
	switch s {
	case ledger.RunSucceeded:
		return "good"
	case ledger.RunFailed, ledger.RunCancelled:
		return "bad"
	case ledger.RunErased:
		return "none"
	}
	return "wait"
}

func stateTone(s ledger.CallState) string {
	switch s {
	case ledger.OutputAvailable:
		return "good"
	case ledger.OutputDenied:
		return "bad"
	case ledger.OutputError:
		return "warn"
	}
	return "wait"
}

// facts are the run in a few words.
func (b builder) facts() []pair {
	run := b.r.Run
	facts := []pair{{"Asked by", b.who(&run.StartedBy)}, {"Started", when(run.StartedAt)}}
	if end := b.end(); !end.IsZero() {
		facts = append(facts, pair{"Took", took(end.Sub(run.StartedAt))})
	}
	if run.Erased > 0 {
		return facts
	}
	facts = append(facts, pair{"Calls", b.tally()})
	if asks, wait := b.waits(); asks > 0 {
		facts = append(facts, pair{"Waited for people", fmt.Sprintf("%s in %s", took(wait), count(asks, "ask", "asks"))})
	}
	if s := run.Started; s != nil {
		who := pair{"Model", b.line(s.Model)}
		if program := b.r.program(); program != "" {
			who = pair{"Program", b.line(program) + ", which acts itself"}
		}
		facts = append(facts, who, pair{"Policy", b.line(s.Policy + " · " + s.Sandbox)})
	}
	if u := run.Usage(); u.Tokens() > 0 {
		facts = append(facts, pair{"Used", used(u)})
	}
	return facts
}

// tally counts the calls by their end.
func (b builder) tally() string {
	by := map[ledger.CallState]int{}
	for _, c := range b.r.Run.Calls {
		by[c.State]++
	}
	if len(by) == 0 {
		return "none"
	}
	var parts []string
	for _, s := range []struct {
		state ledger.CallState
		words string
	}{{ledger.OutputAvailable, "done"}, {ledger.OutputDenied, "denied"}, {ledger.OutputError, "failed"}} {
		if n := by[s.state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.words))
		}
		delete(by, s.state)
	}
	open := 0
	for _, n := range by {
		open += n
	}
	if open > 0 {
		parts = append(parts, fmt.Sprintf("%d not ended", open))
	}
	return strings.Join(parts, ", ")
}

// waits is how many asks people ended or let pass, and the time in which at least one was open.
func (b builder) waits() (asks int, wait time.Duration) {
	var until time.Time
	for _, c := range b.r.Run.Calls { // in the order in which they were asked for, so their asks begin in order but for a little
		a := c.Approval
		if a == nil {
			continue
		}
		asks++
		from, to := a.At, a.ResolvedAt
		if a.Resolved == nil {
			to = b.end()
		}
		if from.Before(until) {
			from = until
		}
		if to.After(from) {
			wait += to.Sub(from)
			until = to
		}
	}
	return asks, wait
}

// end is the run's end, or the last that is known of it.
func (b builder) end() time.Time {
	run := b.r.Run
	if !run.EndedAt.IsZero() {
		return run.EndedAt
	}
	last := run.StartedAt
	for _, r := range run.Rounds {
		last = later(last, r.At)
	}
	for _, c := range run.Calls {
		last = later(last, c.FinishedAt)
		if c.Approval != nil {
			last = later(later(last, c.Approval.At), c.Approval.ResolvedAt)
		}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func when(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04:05 UTC") }

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// since is how long after the run's start something was.
func (b builder) since(t time.Time) string { return "+" + took(t.Sub(b.r.Run.StartedAt)) }

func (b builder) items() []item {
	run := b.r.Run
	if run.Started == nil {
		return nil
	}
	items := []item{{At: clock(run.StartedAt), Kind: "start", Title: "Asked by " + b.who(&run.StartedBy), Text: b.long(b.r.request())}}
	items = append(items, b.moments()...)
	if f := run.Finished; f != nil {
		title := "Ended: " + string(f.Status)
		items = append(items, item{At: clock(run.EndedAt), Since: b.since(run.EndedAt), Kind: "end " + statusTone(f.Status), Title: title, Text: b.long(b.why(f))})
	}
	return items
}

func (b builder) stop() item {
	s := b.r.Run.Stop
	return item{At: clock(s.At), Since: b.since(s.At), Kind: "stop", Title: "Stop asked for by " + b.who(&s.By), Text: b.long(s.Reason)}
}

func (b builder) round(round ledger.Round) item {
	it := item{At: clock(round.At), Since: b.since(round.At), Kind: "round", Title: fmt.Sprintf("Round %d", round.Round), Text: b.long(round.Text)}
	switch n := len(round.ToolCalls); {
	case n > 0:
		it.Title += ": the model makes " + count(n, "call", "calls")
	default:
		it.Title += ": the model answers"
	}
	if f := b.r.Run.Finished; f != nil && f.Answer == round.Text {
		it.Text = "" // it stands below, as the answer
	}
	if u := round.Usage; u.InputTokens+u.OutputTokens > 0 {
		it.Facts = append(it.Facts, pair{"used", used(u)})
	}
	for _, c := range b.r.Run.Calls {
		if c.Round == round.Round {
			it.Calls = append(it.Calls, b.call(c))
		}
	}
	return it
}

func (b builder) call(c *ledger.Call) called {
	v := called{
		ID: b.line(c.ID), Tool: b.line(c.Name), State: string(c.State), Tone: stateTone(c.State), Provider: b.line(c.ProviderID),
		Arguments: b.arguments(c.Arguments, textMost), Seen: b.r.Transcript.Seen(b.r.Run.ID, c.ID), NoModel: b.r.program() != "", Ended: c.Finished != nil,
		Steps: b.steps(c),
	}
	if a := c.Approval; a != nil {
		v.Arguments, v.Digest = b.arguments(a.Arguments, textMost), b.line(a.Digest)
		v.What = b.short(a.Preview.Summary, 200)
		if v.PreviewKind = a.Preview.Kind; v.PreviewKind != "json" {
			v.Preview = b.long(a.Preview.Body)
		}
		for _, note := range a.Preview.Notes {
			v.Notes = append(v.Notes, b.long(note))
		}
	} else {
		v.What = b.short(c.Arguments, 200)
	}
	if f := c.Finished; f != nil {
		v.End = []pair{{"State", string(f.State)}}
		for _, p := range []pair{{"Source", string(f.Source)}, {"Code", f.Code}, {"Reason", f.Reason}} {
			if p.Value != "" {
				v.End = append(v.End, pair{p.Name, b.long(p.Value)})
			}
		}
		v.Output, v.HasOutput = b.long(f.Output), true
	}
	return v
}

// steps are what happened to a call, in order.
func (b builder) steps(c *ledger.Call) []step {
	var steps []step
	if d := c.Decision; d != nil {
		tone := map[ledger.DecisionType]string{ledger.Allow: "good", ledger.Ask: "wait", ledger.Deny: "bad"}[d.Type]
		steps = append(steps, step{Name: string(d.Type), Tone: tone, Text: b.long(d.Reason) + " (" + b.decidedBy(d) + ")"})
	}
	if c.Approval != nil {
		steps = append(steps, b.asked(c.Approval)...)
	}
	if !c.StartedAt.IsZero() {
		steps = append(steps, step{At: clock(c.StartedAt), Name: "started"})
	}
	if f := c.Finished; f != nil {
		s := step{At: clock(c.FinishedAt), Name: b.state(c), Tone: stateTone(f.State)}
		if !c.StartedAt.IsZero() {
			s.Took = "ran for " + took(f.Elapsed)
		}
		steps = append(steps, s)
	}
	return steps
}

// wanted is what an ask wanted of people when it was opened: what was changed since, and who was added, are steps of their
// own.
func (c cleaner) wanted(a *ledger.Approval) string {
	q := a.Original
	s := c.wants(a, q.Approvers, q.Quorum, q.Risk, q.Confirm)
	if as := c.line(q.Preview.RunsAs); as != "" {
		s += "; runs as " + as
	}
	return s + c.stood(a)
}

// wants is who may approve, how many have to, and how carefully.
func (c cleaner) wants(a *ledger.Approval, approvers []string, quorum int, risk string, confirm bool) string {
	s := "May approve: " + cmp.Or(c.named(a, approvers), "nobody")
	if quorum > 1 {
		s += fmt.Sprintf("; %d have to", quorum)
	}
	if risk != "" {
		s += "; " + c.line(risk) + " risk"
	}
	if confirm {
		s += "; a click is confirmed once more"
	}
	return s
}

// rewanted is what changed arguments want of people, where that isn't what the ones before them wanted; else "".
func (c cleaner) rewanted(a *ledger.Approval, i int) string {
	before, m := c.wants(a, a.Original.Approvers, a.Original.Quorum, a.Original.Risk, a.Original.Confirm), a.Amended[i]
	if i > 0 {
		b := a.Amended[i-1]
		before = c.wants(a, b.Approvers, b.Quorum, b.Risk, b.Confirm)
	}
	if now := c.wants(a, m.Approvers, m.Quorum, m.Risk, m.Confirm); now != before {
		return now
	}
	return ""
}

// stood says where else than where its run talks an ask stood, and why.
func (c cleaner) stood(a *ledger.Approval) (s string) {
	if a.Away {
		s += "; where it was asked, too few people may approve, as far as was known"
	}
	for _, p := range a.Elsewhere {
		switch {
		case p.User != "":
			s += "; sent to " + c.named(a, []string{p.User})
		case a.Only:
			s += "; decided in " + c.line(p.Channel) + " only"
		default:
			s += "; also asked in " + c.line(p.Channel)
		}
	}
	return s
}

// decidedBy names what decided, and the policy where it isn't the one that the run began under.
func (b builder) decidedBy(d *ledger.PermissionDecided) string {
	s := b.line(cmp.Or(d.Rule, d.Source))
	if began := b.r.Run.Started; began != nil && d.PolicyHash != began.PolicyHash && len(d.PolicyHash) >= 12 {
		s += ", under the policy " + b.line(d.PolicyHash[:12]) + "…, which took the place of the one before during the run"
	}
	return s
}

// asked are the steps between people.
func (b builder) asked(a *ledger.Approval) []step {
	steps := []step{{At: clock(a.At), Name: "asked", Tone: "wait", Text: b.wanted(a)}}
	for _, s := range a.Shown {
		steps = append(steps, step{Name: "shown", Text: strings.TrimSpace(b.line(s.Surface+" "+s.Channel+" "+s.TS)) + ", until " + clock(s.Until)})
	}
	for _, v := range a.Void {
		steps = append(steps, step{At: clock(v.At), Name: "vote", Text: fmt.Sprintf("%s by %s", v.Type, b.who(&v.By)) + b.because(v.Reason) + "; void, the arguments were changed after it"})
	}
	for i, m := range a.Amended {
		steps = append(steps, step{At: clock(m.At), Name: "changed", Tone: "wait", Text: "by " + b.who(&m.By) + ", to " + b.long(m.Arguments), Took: "after " + took(m.At.Sub(a.At))})
		if now := b.rewanted(a, i); now != "" {
			steps = append(steps, step{Name: "wanted then", Text: now})
		}
	}
	for _, s := range passed(b.cleaner, a) {
		steps = append(steps, step{At: clock(s.at), Name: s.name, Text: s.text, Took: "after " + took(s.at.Sub(a.At))})
	}
	for _, v := range a.Votes {
		if a.Quorum <= 1 && a.Resolved != nil {
			break // the one vote is the resolution
		}
		steps = append(steps, step{At: clock(v.At), Name: "vote", Text: fmt.Sprintf("%s by %s", v.Type, b.who(&v.By)) + b.because(v.Reason), Took: "after " + took(v.At.Sub(a.At))})
	}
	if r := a.Resolved; r != nil {
		tone := "bad"
		if r.Type == ledger.Approved {
			tone = "good"
		}
		wait, _ := waited(a)
		by := "by " + b.who(r.By)
		if r.By == nil {
			by = "by no person"
		}
		steps = append(steps, step{At: clock(a.ResolvedAt), Name: string(r.Type), Tone: tone, Text: fmt.Sprintf("%s (%s)", by, r.Source) + b.because(r.Reason), Took: "after " + took(wait)})
		if g := r.Granted; g != nil {
			steps = append(steps, step{Name: "granted", Text: allowance(g)})
		}
	}
	return steps
}

func (b builder) because(reason string) string {
	if strings.TrimSpace(reason) == "" {
		return ""
	}
	return ": " + b.long(reason)
}

func (b builder) messages() (all []posted) {
	for _, p := range b.r.Run.Posted {
		state := "confirmed, may still change"
		if p.Settled {
			state = "in its last state"
		}
		if p.Gone != "" {
			state = "gone (" + b.line(p.Gone) + ")"
		}
		all = append(all, posted{b.line(p.Thing.Kind), b.line(p.Thing.ID), b.line(p.Channel + " " + p.TS), state})
	}
	return all
}

func (b builder) transcript(req model.Request) (all []spoken) {
	for _, m := range req.Messages {
		if m.Text != "" {
			all = append(all, spoken{string(m.Role), b.long(m.Text)})
		}
		for _, c := range m.ToolCalls {
			all = append(all, spoken{string(m.Role), b.long("calls " + c.ID + " " + c.Name + " " + c.Arguments)})
		}
		for _, r := range m.Results {
			all = append(all, spoken{string(m.Role), b.long(r.ToolCallID + ": " + r.Text)})
		}
	}
	return all
}

// record is where all this stands in the journal.
func (b builder) record() []pair {
	run := b.r.Run
	rec := []pair{{"Run", b.line(run.ID)}, {"Session", b.line(run.Session)}, {"Journal rows", fmt.Sprintf("%d to %d", b.r.First, b.r.Last.Seq)}, {"Head", b.r.Last.String()}}
	if s := run.Started; s != nil {
		rec = append(rec, pair{"Approval mode", b.line(s.Mode)}, pair{"Policy hash", b.line(s.PolicyHash)})
		if s.Place.Channel != "" {
			rec = append(rec, pair{"Slack", b.line(strings.Join(strings.Fields(s.Place.Team+" "+s.Place.Channel+" "+s.Place.Thread), " · "))})
		}
	}
	return rec
}
