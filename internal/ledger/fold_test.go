package ledger

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// drawAny draws any event at all, most of them out of place.
func drawAny(t *rapid.T) Event {
	id := func(label string) string { return rapid.SampledFrom([]string{"1", "1", "1", "2", ""}).Draw(t, label) }
	state := rapid.SampledFrom([]CallState{InputAvailable, OutputAvailable, OutputDenied, OutputError, "odd"}).Draw(t, "state")
	thing := Thing{Kind: "card", ID: id("thing")}
	return Event{
		Seq: rapid.SampledFrom([]int64{1, 1, 1, 1, 0, -1}).Draw(t, "step"), Session: id("session"), Run: id("run"), Call: id("call"),
		Body: rapid.SampledFrom([]Body{
			nil, (*ModelCompleted)(nil), (*ToolFinished)(nil), &Erased{kind: "run_started"},
			&MessageReceived{}, &RunStarted{}, &RunStopRequested{Reason: id("reason")}, &RunFinished{Status: RunFailed},
			&ModelCompleted{ToolCalls: []ToolCall{{ID: id("made")}, {ID: id("made")}}}, &ModelCompleted{},
			&ModelFailed{RetryIn: 1}, &ModelFailed{}, &SessionCompacted{Usage: Usage{InputTokens: 1}},
			&PermissionDecided{Type: Ask}, &ApprovalRequested{Approval: id("approval")}, &ApprovalShown{Approval: id("approval")},
			&ApprovalVoted{Approval: id("approval")}, &ApprovalResolved{Approval: id("approval")}, &ToolStarted{},
			&ToolFinished{State: state}, &MessagePosted{Thing: thing}, &MessageSettled{Thing: thing, RunDone: rapid.Bool().Draw(t, "done")},
		}).Draw(t, "body"),
	}
}

// everything looks at all of a run.
var everything = cmp.Options{cmp.AllowUnexported(Run{}, Erased{}), cmpopts.EquateEmpty()}

func TestFoldProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(rapid.Custom(drawAny), 0, 300).Draw(t, "events")
		events = append([]Event{{Seq: 1, Run: "1", Body: &ModelCompleted{ToolCalls: []ToolCall{{ID: "1"}, {ID: "2"}}}}}, events...)
		for i := range events[1:] { // most rows come in order, some are of a journal that is upside down
			events[i+1].Seq += events[i].Seq
		}
		var whole, parts Run
		for _, e := range events {
			whole.Apply(e)
			checkFold(t, &whole)
		}
		cut := rapid.IntRange(0, len(events)).Draw(t, "cut")
		for _, e := range events[:cut] {
			parts.Apply(e)
		}
		parts.Status() // looking changes nothing
		for _, e := range events[cut:] {
			parts.Apply(e)
			parts.Apply(e) // an event that was read before is passed over, if it has a Seq
		}
		if !slices.ContainsFunc(events, func(e Event) bool { return e.Seq <= 0 }) {
			if diff := cmp.Diff(whole, parts, everything); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func checkFold(t *rapid.T, r *Run) {
	r.Status()
	if f := r.Retrying(); f != nil && (r.Finished != nil || f.RetryIn == 0) {
		t.Fatalf("it is tried again after %+v", f)
	}
	if r.Usage().InputTokens != len(r.Compacted) {
		t.Fatalf("%+v of %d", r.Usage(), len(r.Compacted))
	}
	for _, c := range r.Calls {
		if r.Call(c.ID) != c {
			t.Fatalf("the call %q is there twice", c.ID)
		}
		if c.Finished != nil && c.Finished.State.Terminal() && c.State != c.Finished.State {
			t.Fatalf("the call ended as %s and is %s", c.Finished.State, c.State)
		}
		if c.Approval != nil {
			c.Approval.Until()
		}
	}
	for i, p := range r.Posted {
		for _, q := range r.Posted[:i] {
			if q.Thing == p.Thing && q.Channel == p.Channel && q.TS == p.TS && q.Settled && p.Settled {
				t.Fatal("the same message is settled twice")
			}
		}
	}
}

func TestFoldOfAStory(t *testing.T) {
	l := mustOpen(t, t.TempDir())
	var live Run
	for _, e := range story() {
		for _, e := range mustAppend(t, l, e) {
			live.Apply(e)
		}
	}
	stored, ok, err := l.LoadRun(t.Context(), "r1")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if diff := cmp.Diff(&live, stored, everything); diff != "" {
		t.Error("live and stored differ:", diff)
	}
	c := stored.Call("c1")
	if stored.Status() != RunSucceeded || !stored.Settled || c.State != OutputAvailable || c.StartedAt.IsZero() || c.Approval.Open() || len(c.Approval.Votes) != 1 {
		t.Errorf("%+v, call %+v", stored, c)
	}
	if _, ok, err := l.LoadRun(t.Context(), "nobody's"); ok || err != nil {
		t.Error(ok, err)
	}
}

// FuzzBody: whatever is read as a body can be written, and comes back the same; nothing panics.
func FuzzBody(f *testing.F) {
	for _, e := range story() {
		body, err := encode(e.Body)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Kind(), body)
	}
	f.Add("run_started", []byte(`{"unknown":1}`))
	f.Add("model_completed", []byte(`{"raw":[1, 2]} {}`))
	f.Add("tool_started", []byte(`null`))
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		b, err := decodeBody(kind, data)
		if err != nil {
			return
		}
		if data == nil {
			t.Skip()
		}
		once, err := encode(b)
		if err != nil {
			t.Skip() // a time that JSON can hold and Go can't write
		}
		again, err := decodeBody(kind, once)
		if err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		twice, err := encode(again)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s became %s: %v", once, twice, err)
		}
		var r Run
		r.Apply(Event{Run: "r", Body: b})
		e := Event{Seq: 1, Run: "r", Call: "c", Body: b}
		b.Claims(e)
		awaits(e)
	})
}

func FuzzHead(f *testing.F) {
	f.Add(Head{}.String())
	f.Add("1:00")
	f.Add("-1:" + Hash{1}.String())
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHead(s)
		if err != nil {
			return
		}
		back, err := ParseHead(h.String())
		if err != nil || back != h {
			t.Fatal(s, h, back, err)
		}
	})
}

func TestKinds(t *testing.T) {
	if len(bodies) != 32 {
		t.Errorf("%d kinds", len(bodies))
	}
	for kind, empty := range bodies {
		b, err := encode(empty())
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeBody(kind, b)
		if err != nil || got.Kind() != kind {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
		if diff := cmp.Diff(empty(), got); diff != "" {
			t.Error(kind, diff)
		}
	}
}

func TestHashAndHeadAsText(t *testing.T) {
	h := Hash{0xab, 31: 0x01}
	text, err := encode(map[string]Hash{"h": h})
	if err != nil || string(text) != `{"h":"`+h.String()+`"}` {
		t.Error(string(text), err)
	}
	for _, bad := range []string{"", "1", ":", "01:" + h.String(), "+1:" + h.String(), "1:" + h.String()[1:], "1:" + h.String() + "0", "1:g" + h.String()[1:]} {
		if got, err := ParseHead(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

// TestACallThatEndedStaysAsItEnded, whatever comes after it.
func TestACallThatEndedStaysAsItEnded(t *testing.T) {
	ask, resolved := &ApprovalRequested{Approval: "a"}, &ApprovalResolved{Approval: "a", Type: Approved}
	ended := &ToolFinished{State: OutputDenied}
	for _, bodies := range [][]Body{
		{ended, ask}, {ask, ended, resolved}, {ended, &ToolFinished{State: OutputAvailable}}, {ended, &ToolStarted{}},
	} {
		r := Run{}
		r.Apply(Event{Seq: 1, Run: "r", Body: &ModelCompleted{ToolCalls: []ToolCall{{ID: "c"}}}})
		for i, b := range bodies {
			r.Apply(Event{Seq: int64(i + 2), Run: "r", Call: "c", Body: b})
		}
		if c := r.Call("c"); c.State != OutputDenied || c.Finished != ended {
			t.Errorf("%T then %T: %s", bodies[0], bodies[len(bodies)-1], c.State)
		}
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	for _, bad := range []string{`{"toolName":"x","digest":"","more":1}`, `{} {}`, `{}x`, `null`, `[]`, `"x"`, `{"toolName":1}`, ``, ` {}`} {
		if b, err := decodeBody("tool_started", []byte(bad)); err == nil {
			t.Errorf("%s is read as %+v", bad, b)
		}
	}
	if _, err := decodeBody("tool_stopped", []byte(`{}`)); !errors.Is(err, errUnknownKind) {
		t.Error(err)
	}
}

// TestAStopAfterTheEnd stopped nothing: what was told of the end stays as it was told.
func TestAStopAfterTheEnd(t *testing.T) {
	r := Run{}
	r.Apply(Event{Seq: 1, Run: "r", Body: &RunFinished{Status: RunSucceeded}})
	r.Apply(Event{Seq: 2, Run: "r", Body: &RunStopRequested{Reason: "stopped"}})
	if r.Stop != nil || r.Status() != RunSucceeded {
		t.Errorf("%+v", r.Stop)
	}
}
