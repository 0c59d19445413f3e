package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

func (w *world) fault(f devslack.Fault) {
	w.t.Helper()
	if err := w.slack.SetFault(f); err != nil {
		w.t.Fatal(err)
	}
}

// once checks that what the message asked for was done once and is shown once, whatever went wrong on the way.
func (w *world) once(thread string) {
	w.t.Helper()
	runs := w.runs()
	if len(runs) != 1 {
		w.t.Fatalf("%d runs", len(runs))
	}
	if c := w.card(thread); len(c.buttons) != 0 || !strings.Contains(c.text, "pproved by") {
		w.t.Errorf("the card isn't at its end: %v", c)
	}
	if got, err := os.ReadFile(filepath.Join(w.dir, "workspace", "log")); string(got) != "x" {
		w.t.Errorf("the command ran %d times (%v)", len(got), err)
	}
}

// What can go wrong between us and Slack: every card ends right, no second card, no second run, no tool started twice.
func TestFaults(t *testing.T) {
	const task = "run `printf x >> log`"
	two := 2
	for _, c := range []struct {
		name   string
		before []devslack.Fault // the message
		click  []devslack.Fault // the click
	}{
		{"the card's post is answered by nobody", []devslack.Fault{{Method: "chat.postMessage", Times: 1, DropResponse: true, Match: "approve"}}, nil},
		{"every post is answered by nobody, once", []devslack.Fault{{Method: "chat.postMessage", Times: 2, DropResponse: true}}, nil},
		{"429 with Retry-After on posts", []devslack.Fault{{Method: "chat.postMessage", Times: 6, RetryAfter: &two}}, nil},
		{"429 without Retry-After on posts", []devslack.Fault{{Method: "chat.postMessage", Times: 3, Status: 429, Error: "ratelimited"}}, nil},
		{"500 on posts", []devslack.Fault{{Method: "chat.postMessage", Times: 3, Status: 500}}, nil},
		{"20 times 503 on the update that ends the card", nil, []devslack.Fault{{Method: "chat.update", Times: 20, Status: 503}}},
		{"429 storm on the update that ends the card", nil, []devslack.Fault{{Method: "chat.update", Times: 10, RetryAfter: &two}}},
		{"ok:false on the update that ends the card", nil, []devslack.Fault{{Method: "chat.update", Times: 3, Error: "internal_error"}}},
		{"a code that nobody knows on posts", []devslack.Fault{{Method: "chat.postMessage", Times: 3, Error: "never_heard_of"}}, nil},
		{"access_denied on updates, before the click and after", []devslack.Fault{{Method: "chat.update", Times: 2, Error: "access_denied"}},
			[]devslack.Fault{{Method: "chat.update", Times: 8, Error: "access_denied"}}},
		{"a code that nobody knows on updates", nil, []devslack.Fault{{Method: "chat.update", Times: 8, Error: "never_heard_of"}}},
		{"private sentences are turned away", nil, []devslack.Fault{{Method: "chat.postEphemeral", Times: -1, RetryAfter: &two}}},
		{"the event comes twice", []devslack.Fault{{Socket: "duplicate_event", Times: 2}}, nil},
		{"the event's ack is late", []devslack.Fault{{Socket: "delay_ack", Times: 1}}, nil},
		{"the click's ack is late", nil, []devslack.Fault{{Socket: "delay_ack", Times: 1}}},
		{"Slack refreshes the socket before the click", nil, []devslack.Fault{{Socket: "disconnect", Reason: "refresh_requested"}}},
		{"the socket breaks before the click", nil, []devslack.Fault{{Socket: "disconnect", Reason: "abrupt"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(s *Settings) { s.Timeout = time.Hour }, func(w *world) {
				for _, f := range c.before {
					w.fault(f)
				}
				thread := w.ask("alice", task)
				w.pass(2 * time.Minute)
				card := w.card(thread)
				for _, f := range c.click {
					w.fault(f)
				}
				w.pass(10 * time.Second)
				w.click("bob", card, "approve")
				w.pass(20 * time.Minute)
				w.once(thread)
			})
		})
	}
}

// A guest clicks like mad while Slack takes no private sentences: the one who may decide decides.
func TestAGuestKeepsNobodyFromDeciding(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		half := 30
		w.fault(devslack.Fault{Method: "chat.postEphemeral", Times: -1, RetryAfter: &half})
		thread := w.ask("alice", "run `printf x >> log`")
		card := w.card(thread)
		for range 20 {
			w.click("gus", card, "approve")
		}
		w.click("bob", card, "approve")
		w.pass(2 * time.Second)
		w.once(thread)
	})
}

// A secret in a command stands in no message, whichever of them shortens the command.
func TestASecretIsInNoMessage(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		const secret = "correct-horse-battery-staple"
		thread := w.ask("alice", "run `printf "+strings.Repeat("x", 85)+` && PASSWORD="`+secret+`" printf x >> log`+"`")
		w.click("bob", w.card(thread), "approve")
		w.pass(time.Minute)
		w.once(thread)
		all, err := w.slack.Messages(w.general(), thread)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			if m.User == w.user("alice") {
				continue
			}
			for i := 0; i+8 <= len(secret); i++ {
				if part := secret[i : i+8]; strings.Contains(m.Text, part) || strings.Contains(string(m.Blocks), part) {
					t.Fatalf("%q is in %s %s", part, m.Text, m.Blocks)
				}
			}
		}
	})
}

// A click that Slack loses can be made again.
func TestLostClick(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		thread := w.ask("alice", "run `printf x >> log`")
		w.fault(devslack.Fault{Socket: "lose_click", Times: 1})
		if r := w.click("bob", w.card(thread), "approve"); r.Acked {
			t.Fatalf("it wasn't lost: %+v", r)
		}
		w.click("bob", w.card(thread), "approve")
		w.once(thread)
	})
}

// Slack is down: the card can't be posted, so nobody can be asked, so nothing is done.
func TestSlackDown(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Times: 10000, Status: 503})
		thread := w.ask("alice", proof)
		w.pass(5 * time.Minute)
		if w.exists("proof.txt") {
			t.Error("it ran without anybody having been asked")
		}
		w.deniedOnce("undeliverable")
		w.slack.ClearFaults()
		w.pass(10 * time.Minute)
		if len(w.thread(thread)) == 0 {
			t.Error("after Slack is back nobody is told")
		}
	})
}

// The bot isn't allowed to post there: denied at once, not after the timeout.
func TestCardRefused(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Times: 10000, Error: "restricted_action", Match: "approve"})
		w.ask("alice", proof)
		w.pass(5 * time.Second)
		w.deniedOnce("undeliverable")
	})
}

// Hostile arguments: visible, inert, and complete or not approvable on the card.
func TestHostileArguments(t *testing.T) {
	for name, command := range map[string]string{
		"bidi":               "echo \u202Etxt.exe\u202C ok",
		"zero width":         "echo a\u200Bb\uFEFFc",
		"tags":               "echo \U000E0041\U000E0042",
		"ANSI":               "echo \x1b[2K\x1b[1Grm",
		"backticks":          "echo ``` `id`",
		"channel mention":    "echo <!channel> <!here> <@U0000000>",
		"link":               "echo <http://evil.example|click here>",
		"spaces":             "true" + strings.Repeat(" ", 5000) + "; echo hidden",
		"newlines":           "true" + strings.Repeat("\n", 200) + "echo hidden",
		"3000 of &<>":        strings.Repeat("&<>", 1000),
		"60 KB":              "echo " + strings.Repeat("0123456789abcdef ", 3600) + "; echo the-end",
		"looks like a token": "deploy --token xoxb-1111-2222-abcdefghijkl",
	} {
		t.Run(name, func(t *testing.T) {
			args, err := json.Marshal(map[string]string{"command": command})
			if err != nil {
				t.Fatal(err)
			}
			model := script(t, fmt.Sprintf(`[{"toolCalls":[{"id":"c1","name":"shell","arguments":%s}]},{"text":"ok"}]`, args))
			inWorld(t, func(s *Settings) { s.Model = model }, func(w *world) {
				thread := w.ask("alice", "go")
				card := w.card(thread)
				hostileCard(t, w, card, command)
				w.click("bob", card, "deny")
				if after := w.card(thread); len(after.buttons) != 0 {
					t.Errorf("the card couldn't be brought to its end: %v", after.buttons)
				}
			})
		})
	}
}

func hostileCard(t *testing.T, w *world, card shown, command string) {
	t.Helper()
	for _, r := range card.text {
		if r != '\n' && r != '\t' && (r < ' ' || strings.ContainsRune("\u202E\u202C\u200B\uFEFF\U000E0041\U000E0042", r)) {
			t.Errorf("%U stands on the card", r)
		}
	}
	for _, m := range w.mentions(card.ts) {
		if m != w.user("alice") {
			t.Errorf("%s is mentioned", m)
		}
	}
	messages, err := w.slack.Messages(w.general(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		raw := string(m.Blocks)
		if m.BotID == w.ws.App.BotID && (strings.Contains(raw, `"type":"link"`) || strings.Contains(raw, `"type":"broadcast"`)) {
			t.Errorf("something is linked or broadcast: %s", raw)
		}
	}
	if _, ok := card.buttons["approve"]; ok && len(command) > 12000 {
		t.Error("a request that can't be complete on the card can be approved there")
	}
	if len(command) > 12000 && card.buttons["review"] == "" {
		t.Errorf("there is no way to review it: %v", card.buttons)
	}
}

// mentions are the users named in a message's blocks.
func (w *world) mentions(ts string) (users []string) {
	messages, err := w.slack.Messages(w.general(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range messages {
		if m.TS != ts {
			continue
		}
		var find func(v any)
		find = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, x := range v {
					find(x)
				}
			case map[string]any:
				if v["type"] == "user" {
					users = append(users, v["user_id"].(string))
				}
				for _, x := range v {
					find(x)
				}
			}
		}
		var blocks any
		if json.Unmarshal(m.Blocks, &blocks) == nil {
			find(blocks)
		}
	}
	return users
}

// What doesn't fit on the card is approved where it can be read in full, and exactly that runs.
func TestReviewAndApprove(t *testing.T) {
	command := "printf ok > proof.txt # " + strings.Repeat("0123456789abcdef ", 3600) + "end"
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	model := script(t, fmt.Sprintf(`[{"toolCalls":[{"id":"c1","name":"shell","arguments":%s}]},{"text":"ok"}]`, args))
	inWorld(t, func(s *Settings) { s.Model = model }, func(w *world) {
		thread := w.ask("alice", "go")
		w.click("bob", w.card(thread), "review")
		views, err := w.slack.Views(w.user("bob"))
		if err != nil || len(views) != 1 {
			t.Fatalf("%d views open, %v", len(views), err)
		}
		raw, err := json.Marshal(views[0])
		if err != nil {
			t.Fatal(err)
		}
		parts := slices.DeleteFunc(texts(raw), func(s string) bool { return strings.HasPrefix(s, "Part ") })
		shownText := strings.Join(parts, "") // they follow each other without a gap
		if !strings.Contains(shownText, command) {
			t.Errorf("the modal doesn't show the whole command: %d characters", len(shownText))
		}
		if _, err := w.slack.ViewAction(views[0].ID, devslack.ActionRequest{User: w.user("bob"), ActionID: "approve"}); err != nil {
			t.Fatal(err)
		}
		w.pass(10 * time.Second)
		if !w.exists("proof.txt") || len(w.card(thread).buttons) != 0 {
			t.Error("it was not approved")
		}
		if got := w.runs()[0].Calls[0]; got.State != ledger.OutputAvailable {
			t.Errorf("the call ended as %s", got.State)
		}
	})
}
