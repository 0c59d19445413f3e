package agent

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/ledger"
	"approvalbot/internal/tools"
)

// A foreign tool is one that somebody else defines.
type foreign struct {
	fakeTool
	description string
	property    string
}

func (f foreign) Spec() tools.Spec {
	s := f.fakeTool.Spec()
	s.Description = f.description
	if f.property != "" {
		s.InputSchema = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{f.property: {Type: "string"}}}
	}
	return s
}

// A changing stand has the tools of a source, which are recorded before they are offered.
func (s *stand) changing(t *testing.T) (change func(all ...foreign)) {
	t.Helper()
	act, _ := s.agent.Tools.Set().Get("act")
	live, err := tools.NewLive([]tools.Tool{act}, "mcp")
	if err != nil {
		t.Fatal(err)
	}
	d, err := LoadDefinitions(t.Context(), s.journal)
	if err != nil {
		t.Fatal(err)
	}
	s.agent.Tools, s.agent.Definitions = live, d
	return func(all ...foreign) {
		t.Helper()
		var list []tools.Tool
		for i := range all {
			all[i].calls = s.calls
			list = append(list, all[i])
		}
		set, err := tools.NewSet(list...)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Record(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		if err := live.Replace("mcp", list...); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *stand) defined() (all []ledger.ToolDefined) {
	for e, err := range s.journal.Read(context.Background(), 0, ledger.Filter{Kinds: []string{"tool_defined"}}) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, *e.Body.(*ledger.ToolDefined))
	}
	return all
}

func mail(description, property string) foreign {
	return foreign{fakeTool: fakeTool{name: "mail"}, description: description, property: property}
}

// A definition is recorded once in a row, with what changed, and again when it comes back.
func TestDefinitionsAreRecorded(t *testing.T) {
	scenario(t, `{"turns":[{"text":"unused"}]}`, func(t *testing.T, s *stand) {
		change := s.changing(t)
		a, b := mail("sends", ""), mail("sends more", "to")
		for _, f := range []foreign{a, a, b, b, a} {
			change(f)
		}
		change() // gone, and back as it was
		change(a)
		got := s.defined()
		if len(got) != 3 {
			t.Fatalf("%d definitions were recorded", len(got))
		}
		if got[0].Previous != "" || got[1].Previous != got[0].Hash || got[2].Previous != got[1].Hash || got[2].Hash != got[0].Hash {
			t.Errorf("the hashes don't follow each other: %+v", got)
		}
		if diff := cmp.Diff([][]string{nil, {"description", "inputSchema"}, {"description", "inputSchema"}}, [][]string{got[0].Changed, got[1].Changed, got[2].Changed}); diff != "" {
			t.Error(diff)
		}
		if digest(got[1].Definition) != got[1].Hash {
			t.Error("the hash is not that of the definition")
		}
		// What was recorded is known to the next process.
		d, err := LoadDefinitions(t.Context(), s.journal)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Record(t.Context(), s.agent.Tools.Set()); err != nil {
			t.Fatal(err)
		}
		for _, b := range s.defined()[3:] {
			if b.Tool == "mail" {
				t.Errorf("it was recorded once more: %+v", b)
			}
		}
	})
}

func (s *stand) notes(t *testing.T, call string) string {
	t.Helper()
	for _, run := range s.runs() {
		if c := run.Call(call); c != nil && c.Approval.Open() {
			return strings.Join(c.Approval.Preview.Notes, "\n")
		}
	}
	t.Fatalf("nobody is asked about %s: %v", call, states(s.run()))
	return ""
}

// The first card after a change says so, until the tool was approved as it is; a restart forgets nothing.
func TestNextCardTellsOfAChange(t *testing.T) {
	const script = `{"turns":[{"toolCalls":[{"id":"c1","name":"mail","arguments":{}}]},{"text":"ok"}]}` // of each run
	const said = "The definition of this tool changed since it was last approved: its description and its arguments. Read this call as one of a new tool."
	scenario(t, script, func(t *testing.T, s *stand) {
		change := s.changing(t)
		for i, step := range []struct {
			tool   foreign
			want   string
			answer ledger.ResolutionType
			again  bool // a new process
		}{
			{mail("sends", ""), "", ledger.Approved, false},
			{mail("sends more", "to"), said, ledger.Denied, true},
			{mail("sends more", "to"), said, ledger.Approved, false}, // a denial approves nothing
			{mail("sends more", "to"), "", ledger.Denied, false},
			{mail("sends more", "to"), "", ledger.Denied, true},
		} {
			if step.again {
				change = s.changing(t)
			}
			change(step.tool)
			s.say(alice, "go")
			if got := s.notes(t, "c1"); got != step.want {
				t.Errorf("card %d says %q, want %q", i+1, got, step.want)
			}
			s.decide("c1", bob, step.answer, "")
		}
		s.check()
	})
}

// A tool that changed or went away since the run began doesn't start: allowed, about to be asked, or approved.
func TestChangedToolDoesNotStart(t *testing.T) {
	look := func(description string) foreign {
		return foreign{fakeTool: fakeTool{name: "look", readOnly: true}, description: description}
	}
	// The model's first call waits for people. Meanwhile the tools change; the others are of the next round.
	const script = `{"turns":[{"toolCalls":[{"id":"c1","name":"mail","arguments":{}}]},
		{"toolCalls":[{"id":"c2","name":"look","arguments":{}},{"id":"c3","name":"mail","arguments":{"n":1}}]},{"text":"ok"}]}`
	for name, after := range map[string]struct {
		tools []foreign
		want  string
	}{
		"changed": {[]foreign{mail("other", ""), look("other")}, "has changed since this run began"},
		"gone":    {nil, "is not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, script, func(t *testing.T, s *stand) {
				change := s.changing(t)
				change(mail("sends", ""), look("looks"))
				s.say(alice, "go")
				change(after.tools...)
				s.decide("c1", bob, ledger.Approved, "")
				for _, call := range []string{"c1", "c2", "c3"} {
					c := s.run().Call(call)
					if c.State != ledger.OutputDenied || c.Finished.Source != ledger.SourcePolicy || !strings.Contains(c.Finished.Reason, after.want) {
						t.Errorf("%s ended as %s: %+v", call, c.State, c.Finished)
					}
				}
				if n := s.calls.count("mail") + s.calls.count("look"); n != 0 {
					t.Errorf("%d calls ran", n)
				}
				if asked := s.run().Call("c3").Approval; asked != nil {
					t.Error("people were asked about a tool that isn't there any more")
				}
				s.check()
			})
		})
	}
}
