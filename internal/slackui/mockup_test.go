package slackui

import (
	"strings"
	"testing"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// A mockup says what the card says: all of a call, who may approve, how many, and the buttons.
func TestMockup(t *testing.T) {
	m := Mockup{
		Tool: "restart", Arguments: `{"service":"web"}`, Digest: strings.Repeat("ab", 32), Reason: "It changes things.",
		Preview: ledger.Preview{Summary: "Restart web", Target: "web", Kind: "command", Body: "systemctl restart web\u202e", Notes: []string{"Time limit: 1 minute."}},
		Cwd:     "/srv", Approvers: []string{"U0MADEUP", "S0MADEUP", "requester"}, Quorum: 2, Timeout: 5 * time.Minute, Risk: "high",
	}
	got := m.Text(redact.New())
	for _, want := range []string{
		"Restart web\n", "    systemctl restart web\\u{202E}\n", "Time limit: 1 minute.", "It changes things.", "@U0MADEUP", "@S0MADEUP", "whoever asked",
		"2 people have to approve", "abababab", "Runs in /srv", "sha256:abababab", "[Approve] [Deny] [Deny with Reason…] [⋯ Stop the Run]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q isn't in\n%s", want, got)
		}
	}
	m.Preview.Body = "printf " + strings.Repeat("long ", 10_000)
	if got := m.Text(redact.New()); strings.Contains(got, "[Approve]") || !strings.Contains(got, "[Review] [Deny]") {
		t.Errorf("a card that doesn't show all can be approved:\n%.300s", got)
	}
}
