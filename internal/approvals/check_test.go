package approvals

import (
	"context"
	"strings"
	"testing"

	"approvalbot/internal/ledger"
)

// Everything that is wrong with a list is said at once, and nothing of a list that is well.
func TestCheck(t *testing.T) {
	tests := map[string]struct {
		quorum int
		want   []string
	}{
		"UBOB,SONCALL":        {2, nil},
		"UBOB,UCAROL,SONCALL": {4, []string{"4 people have to approve, and only 3 of those who are listed could"}}, // alice is of the group
		"channel":             {3, nil},
		"requester,UBOB":      {5, nil},
		"UBOB":                {2, []string{"2 people have to approve, and only 1 of those who are listed could"}},
		"UBOB,SLOST":          {9, []string{"the user group SLOST can't be looked up: internal_error"}},
		"USTRANGE":            {1, []string{"USTRANGE (name of USTRANGE) is of a kind that isn't known: only full members of the workspace count"}},
		"SNONE":               {1, []string{`there is no user group with the id SNONE: Slack shows a group's under "Copy group ID"`}},
		"SEMPTY":              {1, []string{"the user group SEMPTY has no members"}},
		"SGUESTS":             {1, []string{"none of those who are listed could approve: only full members of the workspace count"}},
		"UNOBODY,SNONE,UGUEST,UBOB": {2, []string{
			`there is nobody with the id UNOBODY: Slack shows a person's under "Copy member ID" in their profile`,
			"UGUEST (name of UGUEST) is a guest: only full members of the workspace count",
			`there is no user group with the id SNONE: Slack shows a group's under "Copy group ID"`,
			"2 people have to approve, and only 1 of those who are listed could",
		}},
	}
	for words, tt := range tests {
		book := newBook()
		book.groups["SGUESTS"] = []string{"UGUEST", "UNOBODY"}
		var got []string
		for _, err := range Check(context.Background(), book, team, list(t, strings.Split(words, ",")...), tt.quorum) {
			got = append(got, err.Error())
		}
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s, %d of them:\n%s\nwant:\n%s", words, tt.quorum, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

// What would become of an ask is what becomes of it.
func TestForesee(t *testing.T) {
	tests := map[string]struct {
		approvers, channel string
		counting, hopeless string
	}{
		"public":                {"channel", "CPUBLIC", "", shutPublic},
		"public, and a person":  {"channel,UBOB", "CPUBLIC", "UBOB", ""},
		"public, and whoever":   {"channel,requester", "CPUBLIC", "requester", ""},
		"public, listed":        {"channel", "COPEN", "channel", ""},
		"private":               {"channel", "CPRIVATE", "channel", ""},
		"private, nobody there": {"channel", "CBOT", "channel", "none of those who are listed could approve it"},
		"a group that is gone":  {"SNONE", "CPUBLIC", "SNONE", "there is no user group with the id SNONE (APPROVALBOT_APPROVERS)"},
	}
	for name, tt := range tests {
		w := newWorld(t, approvers(t, strings.Split(tt.approvers, ",")...))
		w.book.channels["CBOT"] = ChannelInfo{Kind: PrivateChannel}
		w.book.in["CBOT"] = []string{"UBOT"}
		r := New(w.journal, rosterBook{w.book}, w.settings, w.log)
		f := r.Foresee(t.Context(), ledger.Place{Team: team, Channel: tt.channel})
		if got := strings.Join(f.Approvers, ","); got != tt.counting || f.Hopeless != tt.hopeless {
			t.Errorf("%s: %q, %q", name, got, f.Hopeless)
		}
		if tt.hopeless == "" {
			continue
		}
		p, err := r.Open(t.Context(), Request{
			Key: Key{"run", "call"}, Tool: "shell", Arguments: "{}", Surfaces: []string{"slack"},
			Place: ledger.Place{Team: team, Channel: tt.channel}, Requesters: []ledger.Person{dave.Person()},
		})
		if err != nil {
			t.Fatal(err)
		}
		if res := p.Wait(t.Context()); res.Reason != tt.hopeless {
			t.Errorf("%s: it is denied because of %q", name, res.Reason)
		}
	}
}
