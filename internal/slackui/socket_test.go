package slackui

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/devslack"
	"approvalbot/internal/ledger"
)

// Scenario 39: Slack turns every connection away. There is no storm, and readiness says what is wrong.
func TestNoStormOfConnections(t *testing.T) {
	for reason, want := range map[string]string{
		"too_many_websockets": "too_many_websockets",
		"link_disabled":       "Switch it on",
		"refresh_requested":   "end right after they open",
	} {
		t.Run(reason, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.after(2 * time.Minute)
				before := w.calls(openMethod, 0)
				w.fault(devslack.Fault{Socket: "disconnect", Reason: reason, Times: 1000})
				w.after(time.Minute)
				if n := w.calls(openMethod, 0) - before; n < 1 || n > 8 {
					t.Errorf("%d requests for a connection within a minute", n)
				}
				if err := w.ui.Ready(); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("readiness: %v, want something with %q", err, want)
				}
				w.after(10 * time.Minute)
				if n := w.calls(openMethod, 0) - before; n > 20 {
					t.Errorf("%d requests for a connection within 11 minutes", n)
				}
				w.slack.ClearFaults()
				w.after(3 * time.Minute)
				if err := w.ui.Ready(); err != nil {
					t.Errorf("not ready again: %v", err)
				}
				root := w.say("alice", "@bot `ls`")
				w.click("bob", w.card(root, 0), actionApprove)
				w.settled()
			})
		})
	}
}

// Scenario 40: a refresh between card and click.
func TestARefreshBetweenCardAndClick(t *testing.T) {
	for _, reason := range []string{"refresh_requested", "warning", "abrupt"} {
		t.Run(reason, func(t *testing.T) {
			inWorld(t, func(w *world) {
				root := w.say("alice", "@bot `ls`")
				card := w.card(root, 0)
				w.fault(devslack.Fault{Socket: "disconnect", Reason: reason})
				w.after(time.Second)
				if err := w.ui.Ready(); err != nil {
					t.Errorf("not ready: %v", err)
				}
				if r := w.click("bob", card, actionApprove); !r.Acked {
					t.Errorf("not acknowledged: %+v", r)
				}
				w.settled()
				if len(w.agent.ran()) != 1 {
					t.Error("not started")
				}
			})
		})
	}
}

// Slack is away for a while, short or long: readiness says what is wrong while it is, and is green soon after.
func TestAnOutage(t *testing.T) {
	for _, away := range []time.Duration{8 * time.Second, 2 * time.Minute, time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.after(20 * time.Second)
				w.down.Store(true)
				w.fault(devslack.Fault{Socket: "disconnect", Reason: "abrupt"})
				w.http.CloseIdleConnections()
				w.after(away)
				if err := w.ui.Ready(); err == nil || err.Error() != "Slack can't be reached: dial tcp: connect: connection refused" {
					t.Errorf("readiness during the outage: %v", err)
				}
				w.down.Store(false)
				w.after(10 * time.Second)
				if err := w.ui.Ready(); err != nil {
					t.Errorf("not ready 10 s after the outage: %v", err)
				}
				root := w.say("alice", "@bot `ls`")
				w.click("bob", w.card(root, 0), actionApprove)
				w.settled()
			})
		})
	}
}

// Slack is there but refuses: that is said, and not guessed at.
func TestAnUnwellSlack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.after(20 * time.Second)
		w.fault(devslack.Fault{Method: openMethod, Times: -1, Status: 503})
		w.fault(devslack.Fault{Socket: "disconnect"})
		w.after(30 * time.Second)
		if err := w.ui.Ready(); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("readiness: %v", err)
		}
		if n := w.calls(openMethod, 503); n < 3 || n > 15 {
			t.Errorf("%d attempts in 30 s", n)
		}
		w.slack.ClearFaults()
		w.after(10 * time.Second)
		if err := w.ui.Ready(); err != nil {
			t.Errorf("not ready again: %v", err)
		}
	})
}

// Connections that were turned away are forgotten as soon as one has lived for some seconds.
func TestOneSoundConnectionIsEnough(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Socket: "disconnect", Times: 7})
		w.eventually("a connection that stays", func() bool { return w.client.gate.failing() >= 5 })
		w.slack.ClearFaults()
		w.after(longestPause + soundAfter)
		if err := w.ui.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
	})
}

// Slack takes the token back while we run: the process ends with a sentence.
func TestARefusedTokenEndsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.after(2 * time.Minute)
		w.fault(devslack.Fault{Method: openMethod, Times: -1, Error: "token_revoked"})
		w.fault(devslack.Fault{Socket: "disconnect"})
		err := <-w.ended
		w.ended <- err
		if refused, ok := errors.AsType[*TokenError](err); !ok || refused.Setting != appSetting || refused.Code != "token_revoked" {
			t.Errorf("ended with %v", err)
		}
		if err := w.ui.Ready(); err == nil {
			t.Error("ready after its end")
		}
	})
}

func TestARefusedBotTokenEndsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.fault(devslack.Fault{Method: "chat.postMessage", Times: -1, Error: "account_inactive"})
		w.say("alice", "@bot hello")
		err := <-w.ended
		w.ended <- err
		if refused, ok := errors.AsType[*TokenError](err); !ok || refused.Setting != botSetting {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestTheWrongKindOfAppTokenEndsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		err := <-w.ended
		w.ended <- err
		if _, ok := errors.AsType[*TokenError](err); !ok {
			t.Errorf("ended with %v", err)
		}
	}, func(w *world) {
		w.fault(devslack.Fault{Method: openMethod, Times: -1, Error: "not_allowed_token_type"})
	})
}

func TestConnectSaysWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		defer w.close()
		good := ClientConfig{
			BotToken: w.ws.App.BotToken, AppToken: w.ws.App.AppToken, APIURL: "http://slack.test/api/",
			HTTPClient: &http.Client{Transport: w.http},
		}
		for name, c := range map[string]struct {
			change func(*ClientConfig)
			want   string
		}{
			"no bot token":     {func(c *ClientConfig) { c.BotToken = "" }, "SLACK_BOT_TOKEN is not set"},
			"no app token":     {func(c *ClientConfig) { c.AppToken = "" }, "SLACK_APP_TOKEN is not set"},
			"exchanged":        {func(c *ClientConfig) { c.BotToken, c.AppToken = c.AppToken, c.BotToken }, "look exchanged"},
			"something else":   {func(c *ClientConfig) { c.BotToken = "hello" }, "doesn't start with xoxb-"},
			"an unknown token": {func(c *ClientConfig) { c.BotToken = "xoxb-unknown" }, "install the app in the workspace again"},
			"no URL":           {func(c *ClientConfig) { c.APIURL = "slack.test" }, "SLACK_API_URL"},
			"the page's URL":   {func(c *ClientConfig) { c.APIURL = "http://me:secret@slack.test/" }, "SLACK_API_URL (http://me:xxxxx@slack.test/) is not the address of a Web API"},
			"another path":     {func(c *ClientConfig) { c.APIURL = "http://slack.test/_page" }, "ends in /api/"},
		} {
			cfg := good
			c.change(&cfg)
			_, err := Connect(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil && (strings.Contains(err.Error(), w.ws.App.BotToken) || strings.Contains(err.Error(), w.ws.App.AppToken)) {
				t.Errorf("%s: the sentence has a token in it: %v", name, err)
			}
		}
		c, err := Connect(t.Context(), good)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.CheckAppToken(t.Context()), c.CheckScopes()); err != nil {
			t.Error(err)
		}
		w.slack.InstallApp(devslack.App{BotScopes: []string{"users:read", "chat:write"}})
		if c, err = Connect(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		if err := c.CheckScopes(); err == nil || !strings.Contains(err.Error(), "lacks app_mentions:read, ") {
			t.Errorf("scopes that are missing: %v", err)
		}
		got := [...]string{c.Team, c.BotUser, c.BotID, c.AppID}
		if want := [...]string{w.ws.Team.ID, w.ws.App.BotUserID, w.ws.App.BotID, w.ws.App.ID}; got != want {
			t.Errorf("who we are: %v, want %v", got, want)
		}
	})
}

// Whoever looks at a person asks once, and asks again after a minute.
func TestTheDirectoryAsksOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.client.Directory()
		before := w.calls("users.info", 0)
		w.fault(devslack.Fault{Method: "users.info", DelayMS: 500})
		done := make(chan error)
		for range 20 {
			go func() {
				_, err := d.Person(w.t.Context(), person(w, "carol"))
				done <- err
			}()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := w.calls("users.info", 0) - before; n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		w.after(keepFor)
		if _, err := d.Person(w.t.Context(), person(w, "carol")); err != nil {
			t.Error(err)
		}
		if n := w.calls("users.info", 0) - before; n != 2 {
			t.Errorf("asked %d times after a minute, want 2", n)
		}
	})
}

// That somebody isn't there is an answer; that Slack doesn't say is none.
func TestTheDirectoryKnowsWhoIsNotThere(t *testing.T) {
	inWorld(t, func(w *world) {
		d, ctx := w.client.Directory(), w.t.Context()
		questions := map[string]func() error{
			"users.info":            func() error { _, err := d.Person(ctx, ledger.Person{Team: w.ws.Team.ID, ID: "U0NOBODY"}); return err },
			"usergroups.users.list": func() error { _, err := d.Group(ctx, "S0PLATFORM"); return err },
			"conversations.info":    func() error { _, err := d.Channel(ctx, "C0NOWHERE"); return err },
			"conversations.members": func() error { _, err := d.Member(ctx, "C0NOWHERE", "U0NOBODY"); return err },
		}
		for method, ask := range questions {
			if err := ask(); !errors.Is(err, approvals.ErrNoSuch) {
				t.Errorf("%s: %v", method, err)
			}
			w.fault(devslack.Fault{Method: method, Error: "internal_error"})
			if err := ask(); err == nil || errors.Is(err, approvals.ErrNoSuch) {
				t.Errorf("%s, out of order: %v", method, err)
			}
		}
	})
}

func TestTheDirectoryKeepsNoErrors(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.client.Directory()
		w.fault(devslack.Fault{Method: "users.info", Status: 500})
		if _, err := d.Person(w.t.Context(), person(w, "bob")); err == nil {
			t.Error("an error became an answer")
		}
		if _, err := d.Person(w.t.Context(), person(w, "bob")); err != nil {
			t.Error(err)
		}
		w.after(keepFor)
		w.fault(devslack.Fault{Method: "users.info", DelayMS: 3000})
		ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
		defer cancel()
		if _, err := d.Person(ctx, person(w, "bob")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a slow answer: %v", err)
		}
	})
}
