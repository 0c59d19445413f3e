package slackui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"approvalbot/internal/ledger"
	"approvalbot/internal/rapidtest"
	"approvalbot/internal/redact"
	"approvalbot/internal/tools"
)

// What a secret may look like, and what gives it away. %s is where it stands.
var givenAway = []struct{ around, letters string }{
	{`PASSWORD="%s"`, "abcdefghij -!;&|()#01234"},
	{`PASSWORD='%s'`, "abcdefghij -!;&|()#01234\\\""},
	{`export DB_PASSWORD="%s" && x`, "abcdefghij -01234"},
	{`PASSWORD=%s`, "abcdefghij-01234"},
	{`login --password '%s' now`, "abcdefghij -01234"},
	{`login --password "%s"`, "abcdefghij -01234"},
	{`login --api-key %s x`, "abcdefghij01234"},
	{`curl -H 'Authorization: Bearer %s' x`, "abcdefghij01234"},
	{`psql postgres://bob:%s@db/x`, "abcdefghij01234"},
	{`echo %s`, ""}, // told by its form
	{`deploy "%s" now`, ""},
	{`deploy --key=%s,x`, ""},
}

// formed are secrets that are told by their form, and ours.
func formed(t *rapid.T, own string) string {
	word := func(n int) string {
		return rapid.StringOfN(rapid.SampledFrom([]rune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")), n, n, -1).Draw(t, "token")
	}
	return rapid.SampledFrom([]func() string{
		func() string { return own },
		func() string { return "AI" + "za" + word(35) },
		func() string { return "npm" + "_" + word(36) },
		func() string { return "ghp" + "_" + word(36) },
		func() string { return "xox" + "b-" + word(12) + "-" + word(24) },
	}).Draw(t, "form")()
}

// A secretive is a command line with a secret somewhere in it.
func secretive(t *rapid.T, own string) (command, secret string) {
	place := rapid.SampledFrom(givenAway).Draw(t, "place")
	if place.letters == "" {
		secret = formed(t, own)
	} else {
		letters := rapid.StringOfN(rapid.SampledFrom([]rune(place.letters)), 10, 40, -1)
		secret = "Q" + letters.Draw(t, "secret") + "9"
	}
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"ls", "-la", "x.txt", "&&", "true", "<&>", "häuser", "go", "\t"}), 0, 5)
	before := strings.Join(words.Draw(t, "before"), " ")
	before += strings.Repeat("x", rapid.IntRange(0, 150).Draw(t, "offset")) + " "
	after := rapid.SampledFrom([]string{"", "\nls", " | tee log", " | tee log", " " + strings.Repeat("y", 130)}).Draw(t, "after")
	if rapid.IntRange(0, 40).Draw(t, "long") == 40 {
		after += strings.Repeat("\nls -la /tmp", 1200) // more than fits a card
	}
	return "run " + before + fmt.Sprintf(place.around, secret) + after, secret
}

// No eight characters of a secret in a row are in anything that is shown, wherever the secret stands and whatever is
// shortened.
func TestNoPartOfASecretIsShown(t *testing.T) {
	rapidtest.Checks(t, 25)
	const own = "our-own-0123456789-secret-ABCDEF"
	v := testRenderer()
	v.redactor = redact.New(own)
	d := shellOf(t)
	rapid.Check(t, func(rt *rapid.T) {
		command, secret := secretive(rt, own)
		for name, shown := range everything(rt, v, d, command) {
			if at := leak(shown, secret); at != "" {
				rt.Fatalf("%s shows %q of %q in %q:\n%s", name, at, secret, command, shown)
			}
		}
	})
}

// The same for the line that everything is cut to, wherever a secret stands in it, whoever cuts first.
func TestNoPartOfASecretIsInATitle(t *testing.T) {
	const own = "our-own-0123456789-secret-ABCDEF"
	v := testRenderer()
	v.redactor = redact.New(own)
	d := shellOf(t)
	secrets := []string{own, "AI" + "za" + strings.Repeat("0aB", 11) + "0a", "npm" + "_" + strings.Repeat("0aB", 12), "ghp" + "_" + strings.Repeat("0aB", 12)}
	for _, place := range givenAway {
		for offset := 60; offset < 130; offset += 5 {
			secret := "Qcorrect-0123456789-horse9"
			if place.letters == "" {
				secret = secrets[offset/5%len(secrets)]
			}
			command := strings.Repeat("x", offset) + " " + fmt.Sprintf(place.around, secret) + strings.Repeat(" y", offset%3*40)
			for _, cut := range []int{0, 100} {
				a := &ledger.ApprovalRequested{Tool: "shell", Preview: d.describe(t, argumentsOf(command))}
				if cut > 0 { // a tool that shortens before anybody looks
					a.Preview.Summary = "Run " + cutShown(command, cut)
				}
				c := &ledger.Call{ToolCall: ledger.ToolCall{Name: "shell"}, Approval: &ledger.Approval{ApprovalRequested: a}}
				for _, shown := range []string{v.request(c.Approval).summary, v.what(c)} {
					if at := leak(shown, secret); at != "" {
						t.Fatalf("cut at %d: %q of %q is left in %q", cut, at, secret, shown)
					}
				}
			}
		}
	}
}

func argumentsOf(command string) []byte {
	raw, _ := json.Marshal(map[string]string{"command": command})
	return raw
}

// A describer is the real shell tool.
type describer struct{ tools.Tool }

func shellOf(t *testing.T) describer {
	b, err := tools.OpenBuiltin(tools.Options{Workspace: t.TempDir(), Shell: tools.ShellUnconfined})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	for _, tool := range b.Tools() {
		if tool.Spec().Name == "shell" {
			return describer{tool}
		}
	}
	t.Fatal("there is no shell")
	return describer{}
}

func (d describer) describe(t interface{ Fatal(...any) }, arguments []byte) ledger.Preview {
	p, err := d.Describe(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Preview{Summary: p.Summary, Target: p.Target, Kind: string(p.Kind), Body: p.Body, Notes: p.Notes}
}

// leak finds eight characters of a secret in what is shown.
func leak(shown, secret string) string {
	r := []rune(secret)
	for i := 0; i+8 <= len(r); i++ {
		if part := string(r[i : i+8]); strings.Contains(shown, part) {
			return part
		}
	}
	return ""
}

// everything that is ever shown of a command: as Slack gets it.
func everything(t *rapid.T, v *renderer, d describer, command string) map[string]string {
	arguments := argumentsOf(command)
	change := func(r *ledger.ApprovalRequested) {
		r.Arguments = string(arguments)
		switch rapid.IntRange(0, 2).Draw(t, "preview") {
		case 0: // as the tool describes it
			r.Preview = d.describe(t, arguments)
		case 1: // as a tool would that shortens before anybody looks
			r.Preview = d.describe(t, arguments)
			first, _, _ := strings.Cut(command, "\n")
			r.Preview.Summary = "Run " + string([]rune(first)[:min(len([]rune(first)), rapid.IntRange(4, 300).Draw(t, "cut"))]) + "…"
		default: // not at all
		}
	}
	told := func() *story {
		return newStory().calls("I'll do this: "+command, toolCall("call_1", "shell", string(arguments))).ask("call_1", change).shown("call_1")
	}
	shown := map[string]string{}
	see := func(name string, r rendering) {
		raw, err := json.Marshal(r.blocks)
		if err != nil {
			t.Fatal(err)
		}
		shown[name+" blocks"], shown[name+" text"] = unquoted(raw), r.text
	}
	pending := told()
	see("pending", v.card(&pending.run, pending.call("call_1"), start.Add(time.Hour)))
	see("progress", v.progress(message(command), &pending.run))
	view, file := v.review(&pending.run, pending.call("call_1"))
	shown["review"] = encoded(t, view)
	if file != nil {
		shown["file"] = string(file.content)
		shown["review linked"] = encoded(t, v.reviewLinked(&pending.run, pending.call("call_1"), "https://slack.test/f"))
	}
	name := rapid.SampledFrom([]string{"done", "denied", "failed", "unknown"}).Draw(t, "ending")
	s := told()
	switch name {
	case "done":
		s.approve("call_1", alice).started("call_1").done("call_1", "+ "+command)
	case "denied":
		s.deny("call_1", bob, "I don't like "+command)
	case "failed":
		s.approve("call_1", alice).started("call_1").finish("call_1", ledger.ToolFinished{
			State: ledger.OutputError, Code: "EXIT_STATUS", Reason: "it said no", Output: "sh: " + command})
	case "unknown":
		s.approve("call_1", alice).started("call_1").finish("call_1", ledger.ToolFinished{State: ledger.OutputError, Code: codeUnknown})
	}
	s.end(ledger.RunSucceeded, "I ran `"+command+"`.", "")
	see(name, v.card(&s.run, s.call("call_1"), time.Time{}))
	see(name+" progress", v.progress(message(command), &s.run))
	for i, a := range v.answer(&s.run) {
		see(fmt.Sprint(name, " answer ", i), a)
	}
	return shown
}

func encoded(t *rapid.T, view slack.ModalViewRequest) string {
	raw, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	return unquoted(raw)
}

// unquoted undoes JSON's escapes of what a secret may hold.
func unquoted(raw []byte) string {
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(string(raw))
}
