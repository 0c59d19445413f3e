package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

var (
	ann = ledger.Actor{Kind: ledger.ActorUser, Team: "T1", ID: "U1", Name: "ann", Via: "slack"}
	bob = ledger.Actor{Kind: ledger.ActorUser, Team: "T1", ID: "U2", Name: "bob", Via: "slack"}
	lm  = ledger.Actor{Kind: ledger.ActorModel, ID: "demo"}
)

// tell writes a session into a journal: a run with one call that is approved and fails, one that is denied and one that is
// allowed, and words of others in every place that has some.
func tell(t testing.TB, dir, words string) *ledger.Ledger {
	t.Helper()
	j, err := ledger.Open(context.Background(), dir, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range story("r1", words, 1) {
		if _, err := j.Append(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func story(run, words string, message int64) []ledger.Event {
	arguments := func(n int) string {
		b, _ := json.Marshal(map[string]any{"command": words, "n": n})
		return string(b)
	}
	digest := func(s string) string { h := sha256.Sum256([]byte(s)); return hex.EncodeToString(h[:]) }
	place := ledger.Place{Team: "T1", Channel: "C1", Thread: "1.0"}
	on := func(call string, by ledger.Actor, b ledger.Body) ledger.Event {
		return ledger.Event{Session: "s1", Run: run, Call: call, Actor: by, Body: b}
	}
	ask := func(call string, n int) []ledger.Event {
		a := run + "-" + call
		return []ledger.Event{
			on(call, ledger.System, &ledger.PermissionDecided{Tool: "shell", Type: ledger.Ask, Source: "policy", Reason: words, Digest: digest(arguments(n))}),
			on(call, ledger.System, &ledger.ApprovalRequested{Approval: a, Tool: "shell", Arguments: arguments(n), Digest: digest(arguments(n)), Reason: words,
				Preview: ledger.Preview{Summary: "Run " + words, Kind: "command", Body: words}, Approvers: []string{"channel"}, Quorum: 1, Surfaces: []string{"slack"}}),
			on(call, ledger.System, &ledger.ApprovalShown{Approval: a, Surface: "slack", Channel: "C1", TS: "2." + call, Until: time.Unix(1e9, 0)}),
		}
	}
	message0 := ledger.Event{Session: "s1", Actor: ann, Body: &ledger.MessageReceived{
		Origin: ledger.Origin{Kind: "slack", Team: "T1", Channel: "C1", TS: run}, Place: place, Text: words, Disposition: ledger.Starts}}
	events := []ledger.Event{message0,
		on("", ann, &ledger.RunStarted{Message: message, Place: place, Model: "demo", System: words, Mode: "interactive", Policy: "on_request", Sandbox: "workspace_write"}),
		on("", lm, &ledger.ModelCompleted{Round: 1, Text: words, ToolCalls: []ledger.ToolCall{
			{ID: "c1", Name: "shell", Arguments: arguments(1)}, {ID: "c2", Name: "shell", Arguments: arguments(2)}, {ID: "c3", Name: "read_file", Arguments: `{"path":"x"}`}}}),
	}
	events = append(append(events, ask("c1", 1)...), ask("c2", 2)...)
	events = append(events,
		on("c3", ledger.System, &ledger.PermissionDecided{Tool: "read_file", Type: ledger.Allow, Source: "policy", Reason: words}),
		on("c1", bob, &ledger.ApprovalVoted{Approval: run + "-c1", Type: ledger.Approved}),
		on("c1", bob, &ledger.ApprovalResolved{Approval: run + "-c1", Type: ledger.Approved, Source: ledger.SourceUser, By: &bob}),
		on("c2", bob, &ledger.ApprovalVoted{Approval: run + "-c2", Type: ledger.Denied, Reason: words}),
		on("c2", bob, &ledger.ApprovalResolved{Approval: run + "-c2", Type: ledger.Denied, Source: ledger.SourceUser, Reason: words, By: &bob}),
		on("c1", ledger.System, &ledger.ToolStarted{Tool: "shell", Digest: digest(arguments(1))}),
		on("c3", ledger.System, &ledger.ToolStarted{Tool: "read_file"}),
		on("c1", ledger.System, &ledger.ToolFinished{Tool: "shell", State: ledger.OutputError, Code: "EXIT_STATUS", Reason: words, Output: words}),
		on("c2", ledger.System, &ledger.ToolFinished{Tool: "shell", State: ledger.OutputDenied, Source: ledger.SourceUser, Reason: "bob denied this call: " + words, Output: "Error [APPROVAL_DENIED]: " + words}),
		on("c3", ledger.System, &ledger.ToolFinished{Tool: "read_file", State: ledger.OutputAvailable, Output: words}),
		on("", ledger.System, &ledger.RunFinished{Status: ledger.RunFailed, Code: "MODEL_ERROR", Reason: words, Answer: words, Rounds: 1}),
		on("", ledger.System, &ledger.MessageSettled{Thing: ledger.Thing{Kind: "answer", ID: run}, Channel: "C1", TS: "9." + run, RunDone: true}),
	)
	return events
}

func export(t testing.TB, j *ledger.Reader, o ExportOptions) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	done, err := Export(t.Context(), j, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, m)
	}
	if int64(len(all)) != done.Events {
		t.Errorf("%d lines, %d events", len(all), done.Events)
	}
	return all
}

func closed(t testing.TB, j *ledger.Ledger) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func TestExportFilters(t *testing.T) {
	j := tell(t, t.TempDir(), "date")
	defer closed(t, j)
	for _, e := range story("r2", "uptime", 22) {
		if _, err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	const whole = 21 // events of a run and its message
	for name, c := range map[string]struct {
		f    Filter
		want int
	}{
		"everything":          {Filter{}, 2 * whole},
		"a run":               {Filter{Run: "r1"}, whole - 1},
		"no such run":         {Filter{Run: "r9"}, 0},
		"a session":           {Filter{Session: "s1"}, 2 * whole},
		"a person by id":      {Filter{Actor: "U2"}, 8},
		"a person by name":    {Filter{Actor: "@Bob"}, 8},
		"a kind of actor":     {Filter{Actor: "model"}, 2},
		"a tool":              {Filter{Tool: "read_file"}, 6},
		"denials":             {Filter{Outcome: "denied"}, 12},
		"denials by people":   {Filter{Outcome: "user", Run: "r1"}, 6},
		"a state":             {Filter{Outcome: "output-error"}, 14},
		"an error's code":     {Filter{Outcome: "exit_status"}, 14},
		"of a tool and ended": {Filter{Tool: "read_file", Outcome: "error"}, 0},
		"before it began":     {Filter{To: time.Unix(0, 0)}, 0},
		"from now on":         {Filter{From: time.Now().Add(time.Hour)}, 0},
		"up to now":           {Filter{From: time.Unix(0, 0), To: time.Now().Add(time.Hour)}, 2 * whole},
	} {
		if got := len(export(t, j.Reader, ExportOptions{Filter: c.f})); got != c.want {
			t.Errorf("%s: %d events, want %d", name, got, c.want)
		}
	}
}

// As it is, an exported body has the bytes that stand in the journal; without secrets, it has none.
func TestExportRedacts(t *testing.T) {
	const secret = "xoxb-1234567890-abcdefghij"
	j := tell(t, t.TempDir(), "curl -H 'Authorization: Bearer "+secret+"' <host> & more")
	defer closed(t, j)
	var exact, clean bytes.Buffer
	if _, err := Export(t.Context(), j.Reader, &exact, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(t.Context(), j.Reader, &clean, ExportOptions{Redactor: redact.New()}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(exact.String(), secret) || strings.Contains(clean.String(), secret) {
		t.Error("the secret is missing in the one or left in the other")
	}
	if n, m := strings.Count(exact.String(), "\n"), strings.Count(clean.String(), "\n"); n != m {
		t.Errorf("%d and %d lines", n, m)
	}
}

// An export of a journal that was changed ends at the change and says so.
func TestExportOfABrokenJournal(t *testing.T) {
	dir := t.TempDir()
	closed(t, tell(t, dir, "date"))
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE events SET body = x'7b7d' WHERE seq = 7`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	j := reader(t, dir)
	var out bytes.Buffer
	done, err := Export(t.Context(), j, &out, ExportOptions{})
	broken, ok := errors.AsType[*BrokenError](err)
	if !ok || broken.Report.Problem.Seq != 7 || broken.ExitCode() != 2 || done.Events != 6 || strings.Count(out.String(), "\n") != 6 {
		t.Errorf("%v, %d events", err, done.Events)
	}
}

func reader(t testing.TB, dir string) *ledger.Reader {
	t.Helper()
	j, err := ledger.OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// Whoever reads cannot write is an error of the reading, not of the journal.
func TestExportThatCantBeWritten(t *testing.T) {
	j := tell(t, t.TempDir(), strings.Repeat("words ", 20_000))
	defer closed(t, j)
	full := errors.New("disk full")
	_, err := Export(t.Context(), j.Reader, failing{full}, ExportOptions{})
	if _, broken := errors.AsType[*BrokenError](err); broken || !errors.Is(err, full) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// hostile is text that would do something where it isn't shown as text.
const hostile = "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)> \x1b[2J\x1b]0;title\a \u202Etxt.exe\u200B {{.}} ]]> \" onload='x' password=hunter2hunter2"

func pageOf(t testing.TB, j *ledger.Reader, run string) string {
	t.Helper()
	r, err := Read(context.Background(), j, run)
	if err != nil {
		t.Fatal(err)
	}
	return render(t, r)
}

func render(t testing.TB, r *Reading) string {
	t.Helper()
	var out bytes.Buffer
	if err := Report(&out, r, redact.New()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var tag = regexp.MustCompile(`<(/?[a-zA-Z0-9]+|!)`)

// tags are the elements of a page and how many there are of each.
func tags(page string) map[string]int {
	n := map[string]int{}
	for _, m := range tag.FindAllStringSubmatch(page, -1) {
		n[m[1]]++
	}
	return n
}

func inert(t testing.TB, page string, like map[string]int) {
	t.Helper()
	if diff := cmp.Diff(like, tags(page)); diff != "" {
		t.Errorf("hostile text changes the page (-usual +got):\n%s", diff)
	}
	for _, r := range page {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
			t.Fatalf("the page holds %U", r)
		}
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template met text where it can't be")
	}
}

// What others wrote is text on the page, whatever is in it.
func TestReportIsInert(t *testing.T) {
	usual := tell(t, t.TempDir(), "date")
	defer closed(t, usual)
	j := tell(t, t.TempDir(), hostile)
	defer closed(t, j)
	p := pageOf(t, j.Reader, "r1")
	inert(t, p, tags(pageOf(t, usual.Reader, "r1")))
	if strings.Contains(p, "hunter2") {
		t.Error("a secret is on the page")
	}
	style := p[strings.Index(p, "<style>")+len("<style>") : strings.Index(p, "</style>")]
	if style != reportCSS {
		t.Error("the style isn't the one that the policy allows")
	}
	for _, want := range []string{"Content-Security-Policy", "default-src &#39;none&#39;", "output-denied", "bob denied this call", "has not seen the result", "EXIT_STATUS"} {
		if !strings.Contains(p, want) {
			t.Errorf("%q isn't on the page", want)
		}
	}
}

func FuzzReport(f *testing.F) {
	f.Add(hostile)
	f.Add("`\x00")
	f.Add("\\u{202E}‹secret, 3 characters›")
	like := tags(render(f, readingOf(f, "date")))
	f.Fuzz(func(t *testing.T, words string) {
		if strings.TrimSpace(words) == "" {
			t.Skip() // fewer elements, where there is nothing to say
		}
		r := readingOf(t, words)
		inert(t, render(t, r), like)
		var out bytes.Buffer
		if err := Show(&out, r, redact.New(), Style{Width: 80}); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Fatalf("the terminal gets %q", out.String()[i:])
		}
	})
}

// A terminal gets colours and lines of its width, anything else neither.
// What was wanted of people, and what they were told besides the content, stands in the text and on the page; so does a
// policy that took another's place during the run.
func TestWhatWasWanted(t *testing.T) {
	dir := t.TempDir()
	j, err := ledger.Open(t.Context(), dir, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, j)
	events := story("r1", "words", 1)
	for _, e := range events {
		switch b := e.Body.(type) {
		case *ledger.PermissionDecided:
			b.PolicyHash = strings.Repeat("ab", 32)
		case *ledger.ApprovalRequested:
			b.Risk, b.Confirm, b.Quorum, b.Preview.Notes = "critical", true, 2, []string{"Runs: <rm>."}
		}
	}
	if _, err := j.Append(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	r, err := Read(t.Context(), j.Reader, "r1")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Show(&text, r, redact.New(), Style{}); err != nil {
		t.Fatal(err)
	}
	page := pageOf(t, j.Reader, "r1")
	const wanted = "May approve: channel; 2 have to; critical risk; a click is confirmed once more"
	for what, in := range map[string]string{wanted: text.String(), "May approve: channel; 2 have to": page, "Runs: &lt;rm&gt;.": page, "under the policy abababababab…": page} {
		if !strings.Contains(in, what) {
			t.Errorf("%q isn't in\n%s", what, in)
		}
	}
}

// Who may approve is said as it was asked, by name where the journal has one; who was added, and what other arguments want,
// with the moment.
func TestWhoMayApproveIsToldAsItWas(t *testing.T) {
	at := time.Unix(1e9, 0)
	carol := ledger.Actor{Kind: ledger.ActorUser, ID: "UCAROL", Name: "carol"}
	a := &ledger.Approval{}
	for i, b := range []ledger.Body{
		&ledger.ApprovalRequested{Approval: "a1", Approvers: []string{"UBOB", "channel"}, Names: map[string]string{"UBOB": "bob"}, Preview: ledger.Preview{RunsAs: "deployer"}},
		&ledger.ApprovalEscalated{Approval: "a1", Level: 1, Approvers: []string{"UCAROL", "S1"}},
		&ledger.ApprovalAmended{Approval: "a1", Revision: 1, Approvers: []string{"UCAROL"}, Quorum: 2},
		&ledger.ApprovalAmended{Approval: "a1", Revision: 2, Approvers: []string{"UCAROL"}, Quorum: 2},
	} {
		if !a.Apply(ledger.Event{Seq: int64(i + 1), Time: at.Add(time.Duration(i) * time.Minute), Actor: carol, Body: b}) {
			t.Fatalf("not applied: %T", b)
		}
	}
	c := cleaner{redact.New(), map[string]string{"UCAROL": "carol"}}
	if got, want := c.wanted(a), "May approve: bob (UBOB), channel; runs as deployer"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if p := passed(c, a); len(p) != 1 || p[0].text != "level 1, may approve, too: carol (UCAROL), S1" || !p[0].at.Equal(at.Add(time.Minute)) {
		t.Errorf("%+v", p)
	}
	if got := c.rewanted(a, 0); got != "May approve: carol (UCAROL); 2 have to" {
		t.Errorf("%q", got)
	}
	if got := c.rewanted(a, 1); got != "" {
		t.Errorf("the same is told again: %q", got)
	}
	var text bytes.Buffer
	p := &printer{cleaner: c, w: &text}
	p.approval(a)
	if s := text.String(); strings.Count(s, "wanted then") != 1 || strings.Count(s, "bob (UBOB)") != 1 || p.err != nil {
		t.Errorf("%s", s)
	}
}

func TestShowStyles(t *testing.T) {
	j := tell(t, t.TempDir(), "many words that have to be broken somewhere because a line is not as long as they are")
	defer closed(t, j)
	r, err := Read(t.Context(), j.Reader, "r1")
	if err != nil {
		t.Fatal(err)
	}
	var file, terminal bytes.Buffer
	if err := errors.Join(Show(&file, r, redact.New(), Style{}), Show(&terminal, r, redact.New(), Style{Color: true, Width: 60})); err != nil {
		t.Fatal(err)
	}
	colors := regexp.MustCompile(`\x1b\[[0-9]+m`)
	if colors.MatchString(file.String()) || !colors.MatchString(terminal.String()) {
		t.Error("colours in the file, or none on the terminal")
	}
	words := func(s string) string {
		return strings.Join(strings.Fields(colors.ReplaceAllString(s, "")), "")
	}
	if diff := cmp.Diff(words(file.String()), words(terminal.String())); diff != "" {
		t.Errorf("they say different things: %s", diff)
	}
	var list bytes.Buffer
	if err := List(t.Context(), j.Reader, &list, redact.New(), Style{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(list.String(), "r1 ") || !strings.Contains(list.String(), "failed") || !strings.Contains(list.String(), "1 done") || strings.Count(list.String(), "\n") != 2 {
		t.Error(list.String())
	}
}

// The list says what became of a run's calls: "succeeded" alone would hide that nothing was performed.
func TestListSaysHowCallsEnded(t *testing.T) {
	finished := func(state ledger.CallState, source ledger.Source, code string) *ledger.Call {
		return &ledger.Call{Finished: &ledger.ToolFinished{State: state, Source: source, Code: code}}
	}
	denied, late := finished(ledger.OutputDenied, ledger.SourceUser, ""), finished(ledger.OutputDenied, ledger.SourceTimeout, "")
	for want, calls := range map[string][]*ledger.Call{
		"-":                       nil,
		"1 denied, 1 timed out":   {denied, late},
		"2 denied, 1 done":        {denied, finished(ledger.OutputAvailable, "", ""), denied},
		"1 failed, 1 not ended":   {finished(ledger.OutputError, "", "EXIT_STATUS"), {}},
		"1 not allowed":           {finished(ledger.OutputDenied, ledger.SourcePolicy, "")},
		"1 stopped, 1 broken off": {finished(ledger.OutputDenied, ledger.SourceAbort, ""), finished(ledger.OutputError, "", "ABORTED")},
		"1 with unknown outcome":  {finished(ledger.OutputError, "", "OUTCOME_UNKNOWN")},
	} {
		if got := endings(&ledger.Run{Calls: calls}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A run whose bodies were erased is said to be, by whom and when, in every view, and nothing else fails for it.
func TestErased(t *testing.T) {
	dir := t.TempDir()
	closed(t, tell(t, dir, "the-erased-words"))
	by := ledger.Actor{Kind: ledger.ActorOperator, ID: "root"}
	if _, err := ledger.Prune(t.Context(), dir, ledger.PruneOptions{Before: time.Now().Add(time.Hour), By: by, Reason: "the law"}); err != nil {
		t.Fatal(err)
	}
	j := reader(t, dir)
	r, err := Read(t.Context(), j, "r1")
	if err != nil {
		t.Fatal(err)
	}
	var text, list bytes.Buffer
	if err := errors.Join(Show(&text, r, redact.New(), Style{}), List(t.Context(), j, &list, redact.New(), Style{})); err != nil {
		t.Fatal(err)
	}
	for name, view := range map[string]string{"show": text.String(), "report": pageOf(t, j, "r1")} {
		for _, want := range []string{"was erased", "root", "the law", "ann"} {
			if !strings.Contains(view, want) {
				t.Errorf("%s doesn't say %q:\n%s", name, want, view)
			}
		}
	}
	if !strings.Contains(list.String(), "erased") {
		t.Error(list.String())
	}
	lines := export(t, j, ExportOptions{})
	if len(lines) != 22 || lines[3]["erased"] != true || lines[3]["body"] != nil || lines[21]["kind"] != "pruned" {
		t.Errorf("%d lines: %v", len(lines), lines[3])
	}
	checks := NewChecks(t.Context(), j)
	report, err := j.Verify(t.Context(), ledger.VerifyOptions{Check: checks.Event})
	if err != nil || !report.OK() {
		t.Error(err, report.Problem)
	}
}

// Requests that were built on what has been erased since are counted, not called changed; later ones are checked again.
func TestRecheckAfterErasing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { recheckAfterErasing(t, dir) })
}

func recheckAfterErasing(t *testing.T, dir string) {
	hash := func(events ...ledger.Event) string {
		var tr agent.Transcript
		for _, e := range events {
			if err := tr.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		return hashOf(&tr)
	}
	say := func(seq int64, text string) ledger.Event {
		return ledger.Event{Seq: seq, Session: "s", Actor: ann, Body: &ledger.MessageReceived{Text: text, Disposition: ledger.Starts}}
	}
	start := func(seq int64, run string, message int64) ledger.Event {
		return ledger.Event{Seq: seq, Session: "s", Run: run, Body: &ledger.RunStarted{Message: message}}
	}
	first := []ledger.Event{say(1, "one"), start(2, "r1", 1)}
	second := []ledger.Event{say(5, "two"), start(6, "r2", 5)}
	sampled := func(seq int64, run, hash string) ledger.Event {
		return ledger.Event{Seq: seq, Session: "s", Run: run, Body: &ledger.ModelCompleted{Round: 1, RequestHash: hash}}
	}
	ended := func(seq int64, run string) ledger.Event {
		return ledger.Event{Seq: seq, Session: "s", Run: run, Body: &ledger.RunFinished{Status: ledger.RunSucceeded}}
	}
	one := append(first, sampled(3, "r1", hash(first...)), ended(4, "r1"))
	two := append(second, sampled(7, "r2", hash(append(one, second...)...)), ended(8, "r2"))
	var c agent.Recheck
	for _, e := range append(one, two...) {
		if err := c.Event(e); err != nil {
			t.Fatal(err)
		}
	}
	if c.Requests != 2 || c.Erased != 0 {
		t.Errorf("before: %d requests, %d erased", c.Requests, c.Erased)
	}
	gone := erasedFirst(t, dir, one, two)
	if gone.Requests != 0 || gone.Erased != 1 {
		t.Errorf("after: %d requests computed again, %d not", gone.Requests, gone.Erased)
	}
}
