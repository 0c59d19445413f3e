package approvals

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"approvalbot/internal/ledger"
)

// What was approved is measured again by what is wanted now, person by person, as their clicks would be.
func TestEnough(t *testing.T) {
	votes := func(who ...ledger.Actor) (all []ledger.Vote) {
		for _, w := range who {
			all = append(all, ledger.Vote{By: w, Type: ledger.Approved})
		}
		return all
	}
	denied := []ledger.Vote{{By: bob, Type: ledger.Denied}}
	for name, c := range map[string]struct {
		votes     []ledger.Vote
		approvers []string
		quorum    int
		place     string
		err       error // of the look-ups
		want      string
	}{
		"as the settings say":          {votes: votes(bob), want: ""},
		"a longer list":                {votes: votes(bob), approvers: []string{"UBOB", "UCAROL"}, want: ""},
		"another list":                 {votes: votes(bob), approvers: []string{"UCAROL"}, want: "It now takes the approval of 1 person (UCAROL), and it has 0 that count."},
		"a group that has them":        {votes: votes(carol), approvers: []string{"SONCALL"}, want: ""},
		"a group that doesn't":         {votes: votes(bob), approvers: []string{"SONCALL"}, want: "It now takes the approval of 1 person (SONCALL), and it has 0 that count."},
		"two people, two needed":       {votes: votes(bob, carol), approvers: []string{"UBOB", "UCAROL"}, quorum: 2, want: ""},
		"one person, two needed":       {votes: votes(bob), approvers: []string{"UBOB", "UCAROL"}, quorum: 2, want: "It now takes the approvals of 2 people (UBOB, UCAROL), and it has 1 that count."},
		"the channel, who is there":    {votes: votes(bob), approvers: []string{"channel"}, want: ""},
		"the channel, who isn't":       {votes: votes(dave), approvers: []string{"channel"}, want: "It now takes the approval of 1 person (channel), and it has 0 that count."},
		"a public channel":             {votes: votes(bob), approvers: []string{"channel"}, place: "CPUBLIC", want: "It now takes the approval of 1 person (nobody could give one here), and it has 0 that count."},
		"whoever asked, not listed":    {votes: votes(alice), approvers: []string{"UALICE"}, want: "It now takes the approval of 1 person (UALICE), and it has 0 that count."},
		"whoever asked, listed":        {votes: votes(alice), approvers: []string{"requester"}, want: ""},
		"a token":                      {votes: votes(token), approvers: []string{"UBOB"}, want: ""},
		"a token where two are needed": {votes: votes(token, bob), approvers: []string{"UBOB"}, quorum: 2, want: "It now takes the approvals of 2 people (UBOB), and it has 1 that count."},
		"who has left meanwhile":       {votes: votes(gone), approvers: []string{"UGONE"}, want: "It now takes the approval of 1 person (UGONE), and it has 0 that count."},
		"nobody":                       {votes: nil, want: "It now takes the approval of 1 person (UBOB), and it has 0 that count."},
		"a no":                         {votes: denied, want: "It now takes the approval of 1 person (UBOB), and it has 0 that count."},
		"a list that can't be read":    {votes: votes(bob), approvers: []string{"@bob"}, want: "Who has to approve this now can't be read, so it counts as not approved."},
		"a list of nobody":             {votes: votes(bob), approvers: []string{}, want: "Who has to approve this now can't be read, so it counts as not approved."},
		"Slack is away":                {votes: votes(bob), approvers: []string{"UBOB"}, err: errors.New("away"), want: "It now takes the approval of 1 person (UBOB), and it has 0 that count."},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newBook()
			dir.spoil(0, c.err)
			list, err := ParseApprovers([]string{"UBOB"})
			if err != nil {
				t.Fatal(err)
			}
			r := New(nil, dir, Settings{Approvers: list, Team: team}, slog.New(slog.DiscardHandler))
			if c.place == "" {
				c.place = "CPRIVATE"
			}
			a := &ledger.Approval{Votes: c.votes, ApprovalRequested: &ledger.ApprovalRequested{
				Approval: "a1", Requesters: []ledger.Person{alice.Person()}, Place: ledger.Place{Team: team, Channel: c.place},
			}}
			got := ""
			err = r.Enough(context.Background(), &ledger.Run{ID: "r"}, a, c.approvers, c.quorum)
			if refused, ok := errors.AsType[*RefusedError](err); ok {
				got = refused.Reason
			} else if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
