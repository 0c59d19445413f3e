package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The words, spelled out: a renamed or reordered constant must not slip through.
var (
	everyApproval = []ApprovalPolicy{"never", "on_request", "strict"}
	everySandbox  = []SandboxMode{"danger_full_access", "workspace_write", "read_only"}
)

// Every combination of settings and hints has its line: read-only, destructive,
// open-world, then the answer under never, on_request and strict. The sandbox
// denies in one mode only, so it is checked on top.
func TestDecideExhaustively(t *testing.T) {
	tests := []struct {
		readOnly, destructive, openWorld bool
		want                             [3]Type // never, on_request, strict
		deniedReadOnly                   bool
	}{
		{true, false, false, [3]Type{"allow", "allow", "ask"}, false},
		{true, false, true, [3]Type{"allow", "ask", "ask"}, false},
		{true, true, false, [3]Type{"allow", "ask", "ask"}, true}, // contradicts itself
		{true, true, true, [3]Type{"allow", "ask", "ask"}, true},
		{false, false, false, [3]Type{"allow", "ask", "ask"}, true},
		{false, false, true, [3]Type{"allow", "ask", "ask"}, true},
		{false, true, false, [3]Type{"allow", "ask", "ask"}, true},
		{false, true, true, [3]Type{"allow", "ask", "ask"}, true},
	}
	for _, tt := range tests {
		call := Call{Tool: "x", ReadOnly: tt.readOnly, Destructive: tt.destructive, OpenWorld: tt.openWorld}
		for i, approval := range everyApproval {
			for _, sandbox := range everySandbox {
				p, err := New(approval, sandbox)
				if err != nil {
					t.Fatal(err)
				}
				want := Decision{Type: tt.want[i], Source: "approvalPolicy", Rule: "approvalPolicy=" + string(approval)}
				if sandbox == "read_only" && tt.deniedReadOnly {
					want = Decision{Type: "deny", Source: "sandboxMode", Rule: "sandboxMode=read_only"}
				}
				got := p.Decide(call)
				checkReason(t, got)
				want.Reason = got.Reason
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s, %+v (-want +got):\n%s", approval, sandbox, call, diff)
				}
			}
		}
	}
}

func checkReason(t *testing.T, d Decision) {
	t.Helper()
	if !strings.HasSuffix(d.Reason, ".") || strings.Contains(d.Reason, "%!") {
		t.Errorf("%q is no sentence", d.Reason)
	}
}

func TestReasons(t *testing.T) {
	write := Call{Tool: "write_file", Destructive: true}
	shell := Call{Tool: "shell", Destructive: true, OpenWorld: true}
	read := Call{Tool: "read_file", ReadOnly: true}
	fetch := Call{Tool: "fetch", ReadOnly: true, OpenWorld: true}
	for _, tt := range []struct {
		approval ApprovalPolicy
		sandbox  SandboxMode
		call     Call
		want     string
	}{
		{OnRequest, WorkspaceWrite, write, "write_file can change things, so it needs approval (policy on_request)."},
		{OnRequest, WorkspaceWrite, shell, "shell can change things and reach beyond the workspace, so it needs approval (policy on_request)."},
		{OnRequest, WorkspaceWrite, fetch, "fetch reaches beyond the workspace, so it needs approval (policy on_request)."},
		{OnRequest, WorkspaceWrite, read, "read_file only reads inside the workspace, so it needs no approval (policy on_request)."},
		{Strict, WorkspaceWrite, read, "Every call needs approval (policy strict), read_file too."},
		{Strict, WorkspaceWrite, write, "write_file can change things, and every call needs approval (policy strict)."},
		{Never, WorkspaceWrite, shell, "Nobody is asked about shell (policy never)."},
		{Never, ReadOnly, shell, "shell can change things, and the sandbox is read_only."},
	} {
		p, err := New(tt.approval, tt.sandbox)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(tt.call).Reason; got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestWhatCantBeJudgedIsDenied(t *testing.T) {
	harmless := Call{Tool: "x", ReadOnly: true}
	valid, err := New(Never, DangerFullAccess)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]Decision{
		"nil":              (*Policy)(nil).Decide(harmless),
		"zero":             new(Policy).Decide(harmless),
		"unknown approval": (&Policy{settings: Settings{"always", WorkspaceWrite}}).Decide(harmless),
		"unknown sandbox":  (&Policy{settings: Settings{Never, "open"}}).Decide(harmless),
		"no tool":          valid.Decide(Call{ReadOnly: true}),
		"no decision":      {},
		"unknown answer":   {Type: "Allow"},
	} {
		if !d.Denied() || d.Allowed() || d.NeedsApproval() {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := ApprovalPolicy("always").decide(harmless); d.Type != Deny {
		t.Errorf("an unknown policy decides %+v", d)
	}
}

// Where the operator wants it, and nowhere else, a command that only looks isn't
// asked about; nothing stricter gives way to it.
func TestReadOnlyCommands(t *testing.T) {
	look := Call{Tool: "shell", Destructive: true, OpenWorld: true, ReadOnlyCommand: true}
	other := look
	other.ReadOnlyCommand = false
	for _, approval := range everyApproval {
		for _, sandbox := range everySandbox {
			plain, err := New(approval, sandbox)
			if err != nil {
				t.Fatal(err)
			}
			with := plain.WithReadOnlyCommands()
			if diff := cmp.Diff(plain.Decide(other), with.Decide(other)); diff != "" {
				t.Errorf("%s, %s: another command is decided otherwise:\n%s", approval, sandbox, diff)
			}
			if diff := cmp.Diff(plain.Decide(other), plain.Decide(look)); diff != "" {
				t.Errorf("%s, %s: it counts without being wanted:\n%s", approval, sandbox, diff)
			}
			want := plain.Decide(other).Type
			if approval == OnRequest && sandbox != ReadOnly {
				want = Allow
			}
			if got := with.Decide(look); got.Type != want || !strings.HasSuffix(got.Reason, ".") {
				t.Errorf("%s, %s: %+v, want %s", approval, sandbox, got, want)
			}
			if plain.Hash() == with.Hash() {
				t.Errorf("%s, %s: the hash doesn't tell", approval, sandbox)
			}
		}
	}
	loose, _ := New(OnRequest, WorkspaceWrite)
	tight, err := loose.WithReadOnlyCommands().Tighten(Settings{SandboxMode: WorkspaceWrite})
	if err != nil || !tight.Decide(look).Allowed() {
		t.Errorf("tightened to what it is: %+v, %v", tight.Decide(look), err)
	}
	if tight, err = tight.Tighten(Settings{ApprovalPolicy: Strict}); err != nil || !tight.Decide(look).NeedsApproval() {
		t.Errorf("tightened to strict: %+v, %v", tight.Decide(look), err)
	}
	if d := (*Policy)(nil).WithReadOnlyCommands().Decide(look); !d.Denied() {
		t.Errorf("no policy decides %+v", d)
	}
}

// strictness orders the answers; what is none of them is a deny.
func strictness(d Decision) int {
	switch {
	case d.Allowed():
		return 0
	case d.NeedsApproval():
		return 1
	}
	return 2
}

func drawCall(t *rapid.T) Call {
	return Call{
		Tool:        rapid.SampledFrom([]string{"", "shell", "read_file"}).Draw(t, "tool"),
		ReadOnly:    rapid.Bool().Draw(t, "readOnly"),
		Destructive: rapid.Bool().Draw(t, "destructive"),
		OpenWorld:   rapid.Bool().Draw(t, "openWorld"),

		ReadOnlyCommand: rapid.Bool().Draw(t, "readOnlyCommand"),
		Args:            json.RawMessage(`{}`),
	}
}

// No word that New doesn't know gives a policy, and no policy that New didn't
// make allows anything.
func TestUnknownWordsNeverAllow(t *testing.T) {
	word := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "never", "on_request", "strict", "NEVER", "never ", "read_only", "workspace_write", "danger_full_access"}))
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{ApprovalPolicy(word.Draw(t, "approval")), SandboxMode(word.Draw(t, "sandbox"))}
		known := slices.Contains(everyApproval, s.ApprovalPolicy) && slices.Contains(everySandbox, s.SandboxMode)
		p, err := New(s.ApprovalPolicy, s.SandboxMode)
		if known != (err == nil) || known != (p != nil) {
			t.Fatalf("New(%q, %q) = %v, %v", s.ApprovalPolicy, s.SandboxMode, p, err)
		}
		if d := (&Policy{settings: s}).Decide(drawCall(t)); !known && !d.Denied() {
			t.Fatalf("%q, %q decides %+v", s.ApprovalPolicy, s.SandboxMode, d)
		}
	})
}

func drawSettings(t *rapid.T, label string) Settings {
	return Settings{
		rapid.SampledFrom(everyApproval).Draw(t, label+" approval"),
		rapid.SampledFrom(everySandbox).Draw(t, label+" sandbox"),
	}
}

// A tightened policy never answers more leniently, for no call; a request that
// would is refused and says what it would have loosened.
func TestAuthorityOnlyTightens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, request := drawSettings(t, "base"), drawSettings(t, "request")
		if rapid.Bool().Draw(t, "leave approval") {
			request.ApprovalPolicy = ""
		}
		if rapid.Bool().Draw(t, "leave sandbox") {
			request.SandboxMode = ""
		}
		p, err := New(base.ApprovalPolicy, base.SandboxMode)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "read-only commands") {
			p = p.WithReadOnlyCommands()
		}
		weaker := request.ApprovalPolicy != "" && index(everyApproval, request.ApprovalPolicy) < index(everyApproval, base.ApprovalPolicy) ||
			request.SandboxMode != "" && index(everySandbox, request.SandboxMode) < index(everySandbox, base.SandboxMode)
		tight, err := p.Tighten(request)
		var refused *WeakerError
		if errors.As(err, &refused) != weaker {
			t.Fatalf("%+v tightened to %+v: %v", base, request, err)
		}
		if weaker {
			return
		}
		call := drawCall(t)
		if strictness(tight.Decide(call)) < strictness(p.Decide(call)) {
			t.Fatalf("%+v: %+v decides %+v, tightened to %+v %+v", call, base, p.Decide(call), request, tight.Decide(call))
		}
	})
}

func index[T comparable](list []T, v T) int {
	for i, l := range list {
		if l == v {
			return i
		}
	}
	return -1
}

// never turns asks into allows and nothing else.
func TestNeverKeepsDenies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, call := drawSettings(t, "settings"), drawCall(t)
		p, _ := New(s.ApprovalPolicy, s.SandboxMode)
		never, _ := New(Never, s.SandboxMode)
		if p.Decide(call).Denied() != never.Decide(call).Denied() || never.Decide(call).NeedsApproval() {
			t.Fatalf("%+v: %+v, under never %+v", call, p.Decide(call), never.Decide(call))
		}
	})
}

func TestTightenRefusals(t *testing.T) {
	p, err := New(OnRequest, WorkspaceWrite)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Tighten(Settings{ApprovalPolicy: Never})
	var weaker *WeakerError
	if !errors.As(err, &weaker) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(&WeakerError{"approvalPolicy", "on_request", "never"}, weaker); diff != "" {
		t.Error(diff)
	}
	if want := "approvalPolicy never is weaker than on_request, which is in force; a request can only make it stricter"; weaker.Error() != want {
		t.Errorf("got %q", weaker)
	}
	_, err = p.Tighten(Settings{SandboxMode: "none"})
	if err == nil || errors.As(err, &weaker) || !strings.Contains(err.Error(), "want one of danger_full_access, workspace_write, read_only") {
		t.Errorf("an unknown word: %v", err)
	}
	if _, err := (*Policy)(nil).Tighten(Settings{}); err == nil {
		t.Error("a nil policy was tightened")
	}
}

// Different settings, different hashes; the same ones, always the same: it
// stands in journals.
func TestHash(t *testing.T) {
	seen := map[string]string{}
	for _, a := range everyApproval {
		for _, s := range everySandbox {
			p, err := New(a, s)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprint(a, s)
			if other, ok := seen[p.Hash()]; ok {
				t.Errorf("%s and %s have the same hash", name, other)
			}
			seen[p.Hash()] = name
		}
	}
	const want = "32c025ce135e7c438b19dda3d63a245f05f1dde576f85224988bb42b116ac725"
	p, _ := New(OnRequest, WorkspaceWrite)
	if got := p.Hash(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSettingsAreParsedWhereTheyAreRead(t *testing.T) {
	var s Settings
	if err := json.Unmarshal([]byte(`{"approvalPolicy":"strict"}`), &s); err != nil || s != (Settings{ApprovalPolicy: Strict}) {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, body := range []string{`{"approvalPolicy":"lax"}`, `{"sandboxMode":""}`, `{"sandboxMode":"strict"}`} {
		if err := json.Unmarshal([]byte(body), &s); err == nil || !strings.Contains(err.Error(), "want one of") {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	p, err := New(OnRequest, WorkspaceWrite)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.Decide(Call{Tool: "shell", OpenWorld: true, Destructive: true})
	}
}
