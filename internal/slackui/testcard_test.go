package slackui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The test card of doctor: first that it is one, then the settings that count, and nothing to click.
func TestTestCard(t *testing.T) {
	c := &Client{Team: "T1", BotUser: "UBOT"}
	blocks := c.testCard(Test{Approvers: []string{"U0ANN", "S0CALL"}, Quorum: 2, Timeout: 15 * time.Minute}, time.Unix(1_800_000_000, 0))
	checked := checkMessage(rendering{text: "x", blocks: blocks})
	for _, problem := range checked.problems {
		t.Error(problem)
	}
	if len(checked.actions) > 0 {
		t.Errorf("there is something to click: %v", checked.actions)
	}
	if first := checked.shown.String(); !strings.HasPrefix(first, "This is a test by approvalbot doctor") {
		t.Errorf("it begins with %.80q", first)
	}
	if !checked.users["U0ANN"] || !checked.users["S0CALL"] {
		t.Errorf("it names %v, not who may approve", checked.users)
	}
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1800000900", "2 people have to approve"} { // 1800000900: in a quarter of an hour
		if !strings.Contains(string(raw), want) {
			t.Errorf("%q isn't in %s", want, raw)
		}
	}
}

// Where a request would be denied at once, the test card is one that was.
func TestTestCardWhereNobodyCouldApprove(t *testing.T) {
	c := &Client{Team: "T1", BotUser: "UBOT"}
	blocks := c.testCard(Test{Quorum: 1, Timeout: time.Minute, Hopeless: "the channel is archived"}, time.Unix(1_800_000_000, 0))
	checked := checkMessage(rendering{text: "x", blocks: blocks})
	for _, problem := range checked.problems {
		t.Error(problem)
	}
	shown := checked.shown.String()
	for _, want := range []string{"This is a test", "would be denied at once", "Nobody could be asked: the channel is archived", "Not performed."} {
		if !strings.Contains(shown, want) {
			t.Errorf("it doesn't say %q: %s", want, shown)
		}
	}
	if strings.Contains(shown, "Approve and Deny") || len(checked.actions) > 0 {
		t.Errorf("it speaks of something to click: %s", shown)
	}
}
