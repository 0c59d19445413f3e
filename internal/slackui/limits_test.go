package slackui

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

func person(w *world, name string) ledger.Person {
	return ledger.Person{Team: w.ws.Team.ID, ID: w.user(name)}
}

// A bucket never lets more through than Slack's own would, whatever the times.
func TestABucketStaysBelowSlacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bucket{every: postEvery, burst: postBurst}
		now := time.Unix(1000, 0)
		slacks, filled := 3.0, now
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "pause")) * time.Millisecond)
			now = b.at(now, 0)
			b.take(now)
			// It arrives up to 900 ms later, the next one maybe at once.
			arrives := now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "latency")) * time.Millisecond)
			if arrives.Before(filled) {
				arrives = filled
			}
			slacks = min(3, slacks+arrives.Sub(filled).Seconds())
			filled = arrives
			if slacks < 1-1e-6 {
				t.Fatalf("Slack has %f left", slacks)
			}
			slacks--
		}
	})
}

func TestABucketObeysAStop(t *testing.T) {
	now := time.Unix(1000, 0)
	b := bucket{every: time.Second, burst: 3}
	b.stop(now, 10*time.Second)
	for i, want := range []int{10, 11, 12} {
		at := b.at(now, 0)
		b.take(at)
		if got := at.Sub(now); got != time.Duration(want)*time.Second {
			t.Errorf("call %d after %s, want %ds: no burst after a stop", i, got, want)
		}
	}
}

// What progress leaves is there for the cards.
func TestABucketsReserve(t *testing.T) {
	now := time.Unix(1000, 0)
	b := bucket{every: time.Second, burst: 5}
	for range 3 {
		b.take(now)
	}
	if at := b.at(now, 2); !at.After(now) {
		t.Error("the reserve was spent")
	}
	if at := b.at(now, 0); at.After(now) {
		t.Error("the reserve can't be used")
	}
}

func TestTheGate(t *testing.T) {
	now := time.Unix(1000, 0)
	opened := func(g *gate, now time.Time) { g.opened, g.refused = now, false }
	g := &gate{jitter: func() float64 { return 0 }}
	var got []time.Duration
	for range 9 {
		d := g.pause(now)
		got = append(got, d/time.Second)
		now = now.Add(d)
		opened(g, now)
	}
	if diff := cmp.Diff([]time.Duration{0, 0, 2, 4, 8, 16, 32, 60, 60}, got); diff != "" {
		t.Errorf("pauses in seconds (-want +got):\n%s", diff)
	}
	// What couldn't be opened is no connection that ended early.
	g.unopened(false)
	if d := g.pause(now); d != 0 {
		t.Errorf("%s on top of slack-go's own pause", d)
	}
	for i := range 20 {
		opened(g, now)
		g.unopened(i == 0)
		if d := g.pause(now); d != outagePause {
			t.Errorf("%s between attempts during an outage, want %s", d, outagePause)
		}
	}
	g.greeted = now
	g.refused = false
	if d := g.pause(now.Add(soundAfter)); d != 0 || g.early != 0 {
		t.Errorf("%s after a sound connection, %d early ones remembered", d, g.early)
	}
}

func TestWhoSomebodyIs(t *testing.T) {
	d := &directory{client: &Client{Team: "T1"}}
	for name, c := range map[string]struct {
		team string
		user slack.User
		want approvals.PersonKind
	}{
		"a member":                 {"T1", slack.User{TeamID: "T1"}, approvals.FullMember},
		"a member, team unknown":   {"", slack.User{TeamID: "T1"}, approvals.FullMember},
		"an administrator":         {"T1", slack.User{TeamID: "T1", IsAdmin: true}, approvals.FullMember},
		"a guest":                  {"T1", slack.User{TeamID: "T1", IsRestricted: true}, approvals.Guest},
		"a single-channel guest":   {"T1", slack.User{TeamID: "T1", IsUltraRestricted: true}, approvals.Guest},
		"somebody only invited":    {"T1", slack.User{TeamID: "T1", IsInvitedUser: true}, approvals.Guest},
		"a stranger":               {"T1", slack.User{TeamID: "T1", IsStranger: true}, approvals.External},
		"of another workspace":     {"T2", slack.User{TeamID: "T2"}, approvals.External},
		"claims another workspace": {"T2", slack.User{TeamID: "T1"}, approvals.External},
		"claims ours":              {"T1", slack.User{TeamID: "T2"}, approvals.External},
		"no team":                  {"T1", slack.User{}, approvals.External},
		"of our organization":      {"T1", slack.User{TeamID: "E1", Enterprise: slack.EnterpriseUser{Teams: []string{"T1"}}}, approvals.FullMember},
		"of another of its teams":  {"T2", slack.User{TeamID: "E1", Enterprise: slack.EnterpriseUser{Teams: []string{"T2"}}}, approvals.External},
		"a bot":                    {"T1", slack.User{TeamID: "T1", IsBot: true}, approvals.Bot},
		"slackbot":                 {"T1", slack.User{TeamID: "T1", ID: "USLACKBOT"}, approvals.Bot},
		"deactivated":              {"T1", slack.User{TeamID: "T1", Deleted: true}, approvals.Deactivated},
		"a deactivated guest":      {"T1", slack.User{TeamID: "T1", Deleted: true, IsRestricted: true}, approvals.Deactivated},
	} {
		if got := d.kind(ledger.Person{Team: c.team, ID: "U1"}, &c.user); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	slackSays := func(code string) error { return slack.SlackErrorResponse{Err: code} }
	for want, errs := range map[verdict][]error{
		confirmed: {nil},
		limited:   {&slack.RateLimitedError{RetryAfter: time.Second}, slackSays("ratelimited"), fmt.Errorf("x: %w", slackSays("rate_limited"))},
		unsure:    {errUnanswered, slack.StatusCodeError{Code: 503}, slackSays("internal_error"), fmt.Errorf("reset")},
		failed:    {slackSays("accesslimited")},
		malformed: {slackSays("invalid_blocks"), slackSays("msg_blocks_too_long")},
		refused:   {slackSays("message_not_found"), slackSays("channel_not_found"), slackSays("is_archived"), slackSays("never_heard_of")},
		locked:    {slackSays("token_revoked"), slackSays("invalid_auth")},
	} {
		for _, err := range errs {
			if got := judge(err).verdict; got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
}
