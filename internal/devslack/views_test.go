package devslack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

func label(text string) *slack.TextBlockObject {
	return slack.NewTextBlockObject("plain_text", text, false, false)
}

// review is a modal with inputs of several kinds.
func review(title string) slack.ModalViewRequest {
	reason := slack.NewInputBlock("why", label("Why"), nil, slack.NewPlainTextInputBlockElement(nil, "reason"))
	risk := slack.NewInputBlock("risk", label("Risk"), nil, slack.NewOptionsSelectBlockElement("static_select", label("choose"), "level",
		slack.NewOptionBlockObject("low", label("Low"), nil), slack.NewOptionBlockObject("high", label("High"), nil)))
	risk.Optional = true
	checks := slack.NewInputBlock("checks", label("Checked"), nil, slack.NewCheckboxGroupsBlockElement("done",
		slack.NewOptionBlockObject("a", label("A"), nil), slack.NewOptionBlockObject("b", label("B"), nil)))
	checks.Optional = true
	return slack.ModalViewRequest{Type: slack.VTModal, Title: label(title), Submit: label("Send"), Close: label("Cancel"),
		CallbackID: "review", PrivateMetadata: "ap-1", NotifyOnClose: true,
		Blocks: slack.Blocks{BlockSet: []slack.Block{reason, risk, checks,
			slack.NewActionBlock("buttons", slack.NewButtonBlockElement("approve", "ap-1", label("Approve")))}}}
}

// modalBot opens a modal on every click in a message and answers submissions
// with what the test says.
type modalBot struct {
	*bot
	seen   []slack.InteractionCallback
	view   *slack.ViewResponse
	err    error
	answer any
	open   func(triggerID string) (*slack.ViewResponse, error)
}

func (b *bench) modalBot() *modalBot {
	out := &modalBot{}
	out.open = func(trigger string) (*slack.ViewResponse, error) { return b.api.OpenView(trigger, review("Review")) }
	out.bot = b.connect(func(evt socketmode.Event) (bool, any) {
		if evt.Type != socketmode.EventTypeInteractive {
			return true, nil
		}
		c := evt.Data.(slack.InteractionCallback)
		out.seen = append(out.seen, c)
		if c.Type == slack.InteractionTypeBlockActions {
			out.view, out.err = out.open(c.TriggerID)
			return true, nil
		}
		return true, out.answer
	})
	return out
}

// opened clicks a card and returns the modal that it opened for bob.
func (b *bench) opened(bot *modalBot) View {
	b.t.Helper()
	b.clickCard("general")
	if bot.err != nil {
		b.t.Fatal(bot.err)
	}
	views, err := b.srv.Views(b.user("bob"))
	if err != nil || len(views) == 0 {
		b.t.Fatalf("views %v, %v", views, err)
	}
	return views[0]
}

func TestModalOpensForWhoClicked(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.modalBot()
		v := b.opened(bot)
		if v.ID != bot.view.View.ID || v.PrivateMetadata != "ap-1" || v.CallbackID != "review" || v.RootViewID != v.ID || v.PreviousViewID != nil {
			t.Errorf("view %s", encode(v))
		}
		if others, err := b.srv.Views(b.user("alice")); err != nil || len(others) != 0 {
			t.Errorf("alice sees %v, %v", others, err)
		}
		if _, err := b.srv.SubmitView(v.ID, SubmitRequest{User: b.user("alice")}); err == nil {
			t.Error("alice submitted bob's modal")
		}
	})
}

func TestTriggers(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.modalBot()
		var trigger string
		bot.open = func(id string) (*slack.ViewResponse, error) { trigger = id; return nil, nil }
		open := func() string {
			_, err := b.api.OpenView(trigger, review("Review"))
			if err == nil {
				return ""
			}
			return err.Error()
		}
		b.clickCard("general")
		time.Sleep(TriggerLife)
		if err := open(); err != "" {
			t.Errorf("at the last moment: %s", err)
		}
		if err := open(); err != "exchanged_trigger_id" {
			t.Errorf("the second time: %s", err)
		}
		b.clickCard("general")
		time.Sleep(TriggerLife + time.Millisecond)
		if err := open(); err != "expired_trigger_id" {
			t.Errorf("too late: %s", err)
		}
		trigger = "1.2.3"
		if err := open(); err != "invalid_trigger_id" {
			t.Errorf("made up: %s", err)
		}
	})
}

func TestSubmission(t *testing.T) {
	update := slack.NewUpdateViewSubmissionResponse(new(review("Updated")))
	push := slack.NewPushViewSubmissionResponse(new(review("Pushed")))
	for name, test := range map[string]struct {
		answer any
		action string
		titles []string // of the open modals afterwards, the visible one first
		errors map[string]string
	}{
		"closed":  {nil, "", nil, nil},
		"errors":  {slack.NewErrorsViewSubmissionResponse(map[string]string{"why": "too short"}), "errors", []string{"Review"}, map[string]string{"why": "too short"}},
		"updated": {update, "update", []string{"Updated"}, nil},
		"pushed":  {push, "push", []string{"Pushed", "Review"}, nil},
		"cleared": {slack.NewClearViewSubmissionResponse(), "clear", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, b *bench) {
				bot := b.modalBot()
				v := b.opened(bot)
				bot.answer = test.answer
				result, err := b.srv.SubmitView(v.ID, SubmitRequest{User: b.user("bob"), Values: map[string]map[string]any{
					"why": {"reason": "because"}, "risk": {"level": "high"}, "checks": {"done": []any{"a", "b"}}}})
				if err != nil || !result.OK || !result.Acked || result.ResponseAction != test.action {
					t.Errorf("result %+v, %v", result, err)
				}
				if diff := cmp.Diff(test.errors, result.Errors); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.titles, b.titles("bob")); diff != "" {
					t.Errorf("open modals (-want +got):\n%s", diff)
				}
				c := bot.seen[len(bot.seen)-1]
				values := c.View.State.Values
				if c.Type != slack.InteractionTypeViewSubmission || c.View.PrivateMetadata != "ap-1" || values["why"]["reason"].Value != "because" ||
					values["risk"]["level"].SelectedOption.Value != "high" || len(values["checks"]["done"].SelectedOptions) != 2 {
					t.Errorf("submission %+v", c.View)
				}
			})
		})
	}
}

func (b *bench) titles(name string) []string {
	b.t.Helper()
	views, err := b.srv.Views(b.user(name))
	if err != nil {
		b.t.Fatal(err)
	}
	var out []string
	for _, v := range views {
		var title struct{ Text string }
		if err := json.Unmarshal(v.Title, &title); err != nil {
			b.t.Fatal(err)
		}
		out = append(out, title.Text)
	}
	return out
}

// What Slack's own client refuses never reaches the app.
func TestIncompleteSubmissionIsNotSent(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.modalBot()
		v := b.opened(bot)
		before := len(bot.seen)
		result, err := b.srv.SubmitView(v.ID, SubmitRequest{User: b.user("bob"), Values: map[string]map[string]any{"why": {"reason": " "}}})
		if err != nil || result.OK || result.Errors["why"] == "" || len(bot.seen) != before {
			t.Errorf("result %+v, %v", result, err)
		}
		for name, values := range map[string]map[string]map[string]any{
			"unknown block":  {"nope": {"reason": "x"}},
			"unknown option": {"risk": {"level": "extreme"}},
			"wrong type":     {"why": {"reason": 7}},
		} {
			if _, err := b.srv.SubmitView(v.ID, SubmitRequest{User: b.user("bob"), Values: values}); err == nil {
				t.Errorf("%s was accepted", name)
			}
		}
	})
}

func TestUnacknowledgedSubmissionKeepsTheModal(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.modalBot()
		v := b.opened(bot)
		bot.stop()
		synctest.Wait()
		result, err := b.srv.SubmitView(v.ID, SubmitRequest{User: b.user("bob"), Values: map[string]map[string]any{"why": {"reason": "x"}}})
		if err != nil || result.OK || result.Acked {
			t.Errorf("result %+v, %v", result, err)
		}
		if got := b.titles("bob"); !cmp.Equal(got, []string{"Review"}) {
			t.Errorf("open: %v", got)
		}
	})
}

func TestViewStackAndHash(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.modalBot()
		first := b.opened(bot)
		n := 1
		bot.open = func(trigger string) (*slack.ViewResponse, error) {
			n++
			return b.api.PushView(trigger, review(fmt.Sprintf("Review %d", n)))
		}
		for range 2 {
			views, err := b.srv.Views(b.user("bob"))
			if err != nil {
				t.Fatal(err)
			}
			if r, err := b.srv.ViewAction(views[0].ID, ActionRequest{User: b.user("bob"), ActionID: "approve"}); err != nil || !r.Acked || bot.err != nil {
				t.Fatalf("%+v, %v, %v", r, err, bot.err)
			}
		}
		if diff := cmp.Diff([]string{"Review 3", "Review 2", "Review"}, b.titles("bob")); diff != "" {
			t.Errorf("stack (-want +got):\n%s", diff)
		}
		views, err := b.srv.Views(b.user("bob"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.srv.ViewAction(views[0].ID, ActionRequest{User: b.user("bob"), ActionID: "approve"}); err != nil || bot.err == nil || bot.err.Error() != "push_limit_reached" {
			t.Errorf("a fourth: %v, %v", err, bot.err)
		}
		if views[0].RootViewID != first.ID || views[0].PreviousViewID == nil || *views[0].PreviousViewID != views[1].ID {
			t.Errorf("the top is %s", encode(views[0]))
		}
		if _, err := b.api.UpdateView(review("New"), "", first.Hash, first.ID); err != nil {
			t.Errorf("update with the right hash: %v", err)
		}
		if _, err := b.api.UpdateView(review("Newer"), "", first.Hash, first.ID); err == nil || err.Error() != "hash_conflict" {
			t.Errorf("update with an old hash: %v", err)
		}
		if _, err := b.api.UpdateView(review("Newer"), "", "", "V0"); err == nil || err.Error() != "not_found" {
			t.Errorf("update of nothing: %v", err)
		}
	})
}

// Closing tells the app only when it asked for it, and not what was typed.
func TestCloseView(t *testing.T) {
	for _, notify := range []bool{true, false} {
		t.Run(fmt.Sprint(notify), func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, b *bench) {
				bot := b.modalBot()
				view := review("Review")
				view.NotifyOnClose = notify
				bot.open = func(trigger string) (*slack.ViewResponse, error) { return b.api.OpenView(trigger, view) }
				v := b.opened(bot)
				if r, err := b.srv.CloseView(v.ID, b.user("bob")); err != nil || !r.OK || r.Acked != notify {
					t.Errorf("receipt %+v, %v", r, err)
				}
				closed := 0
				for _, c := range bot.seen {
					if c.Type == slack.InteractionTypeViewClosed {
						closed++
						if c.View.ID != v.ID || c.View.PrivateMetadata != "ap-1" || len(c.View.State.Values) != 0 {
							t.Errorf("closed %+v", c.View)
						}
					}
				}
				if (closed == 1) != notify || b.titles("bob") != nil {
					t.Errorf("told %d times, still open %v", closed, b.titles("bob"))
				}
			})
		})
	}
}

func TestViewErrors(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		for name, test := range map[string]struct{ view, want string }{
			"none":       {"", "invalid_arguments"},
			"no title":   {`{"type":"modal","blocks":[]}`, "invalid_arguments"},
			"home":       {`{"type":"home","blocks":[]}`, "invalid_arguments"},
			"too large":  {`{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[],"private_metadata":"` + strings.Repeat("x", maxViewSize) + `"}`, "view_too_large"},
			"no trigger": {`{"type":"modal","title":{"type":"plain_text","text":"x"},"blocks":[]}`, "invalid_trigger_id"},
		} {
			if got := b.call("views.open", map[string]string{"view": test.view}); got.err() != test.want {
				t.Errorf("%s: %v, want %s", name, got.body, test.want)
			}
		}
	})
}

func TestHome(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, b *bench) {
		bot := b.connect(ackAll)
		home := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewActionBlock("a", slack.NewButtonBlockElement("refresh", "", label("Refresh")))}}}
		if err := b.srv.OpenHome(b.user("bob")); err != nil {
			t.Fatal(err)
		}
		published, err := b.api.PublishViewContext(t.Context(), slack.PublishViewContextRequest{UserID: b.user("bob"), View: home})
		if err != nil {
			t.Fatal(err)
		}
		views, err := b.srv.Views(b.user("bob"))
		if err != nil || len(views) != 1 || views[0].Type != "home" {
			t.Fatalf("views %v, %v", views, err)
		}
		if r, err := b.srv.ViewAction(views[0].ID, ActionRequest{User: b.user("bob"), ActionID: "refresh"}); err != nil || !r.Acked {
			t.Errorf("%+v, %v", r, err)
		}
		stale := "0.0"
		if _, err := b.api.PublishViewContext(t.Context(), slack.PublishViewContextRequest{UserID: b.user("bob"), View: home, Hash: &stale}); err == nil || err.Error() != "hash_conflict" {
			t.Errorf("an old hash: %v", err)
		}
		if len(bot.of(socketmode.EventTypeEventsAPI)) != 1 || published.View.ID != views[0].ID {
			t.Errorf("events %v", bot.events)
		}
		app := DefaultApp()
		app.HomeTab = false
		b.srv.InstallApp(app)
		if err := b.srv.OpenHome(b.user("bob")); err == nil {
			t.Error("opened a Home tab that is off")
		}
		if got := b.call("views.publish", map[string]string{"user_id": b.user("bob"), "view": `{"type":"home","blocks":[]}`}); got.err() != "not_enabled" {
			t.Errorf("published to a Home tab that is off: %v", got.body)
		}
	})
}
