package approvals

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
)

// Two of alice (who asked), bob, carol and dave have to approve. The steps are what each says and what they are told.
func TestQuorum(t *testing.T) {
	type step struct {
		say  Decision
		told string
	}
	bobByToken := ledger.Actor{Kind: ledger.ActorUser, Team: team, ID: "UBOB", Via: "http"}
	tests := map[string]struct {
		approvers []string
		steps     []step
		end       string
	}{
		"two people": {
			steps: []step{{approve(bob), "1 of 2"}, {approve(carol), "approved by UCAROL"}, {approve(bob), "approved by UCAROL"},
				{deny(bob, ""), "conflict: approved by UCAROL"}},
			end: "approved user UCAROL",
		},
		"one person twice": {
			steps: []step{{approve(bob), "1 of 2"}, {approve(bob), "1 of 2"}, {approve(bobByToken), "1 of 2"}},
			end:   "denied abort",
		},
		"a deny ends it": {
			steps: []step{{approve(bob), "1 of 2"}, {deny(carol, "no"), "denied by UCAROL"}, {approve(dave), "conflict: denied by UCAROL"}},
			end:   "denied user UCAROL",
		},
		"somebody has second thoughts": {
			steps: []step{{approve(bob), "1 of 2"}, {deny(bob, "wait"), "denied by UBOB"}, {deny(bob, ""), "denied by UBOB"}},
			end:   "denied user UBOB",
		},
		"whoever asked doesn't count": {
			steps: []step{{approve(bob), "1 of 2"}, {approve(alice), "refused"}},
			end:   "denied abort",
		},
		"whoever asked can deny": {
			steps: []step{{approve(bob), "1 of 2"}, {deny(alice, "changed my mind"), "denied by UALICE"}},
			end:   "denied user UALICE",
		},
		"whoever asked counts where listed": {
			approvers: []string{"requester", "UBOB"},
			steps:     []step{{approve(alice), "1 of 2"}, {approve(alice), "1 of 2"}, {approve(bob), "approved by UBOB"}},
			end:       "approved user UBOB",
		},
		"a token without a person doesn't count": {
			steps: []step{{approve(token), "refused"}, {approve(bob), "1 of 2"}, {deny(token, ""), "refused"}},
			end:   "denied abort",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, approvers(t, "UBOB", "UCAROL", "UDAVE"), quorum(2))
				p := w.open("run", "call", func(q *Request) { q.Approvers = tt.approvers })
				for i, s := range tt.steps {
					out, err := w.ResolveByID(t.Context(), p.ID(), s.say)
					got := told(out, err)
					if _, refused := errors.AsType[*RefusedError](err); refused {
						got = "refused"
					}
					if got != s.told {
						t.Errorf("step %d: told %q, want %q", i, got, s.told)
					}
				}
				if got := ended(w.abort(p)); got != tt.end {
					t.Errorf("it ended as %q, want %q", got, tt.end)
				}
			})
		})
	}
}

// A call may want more people than the settings say, never fewer.
func TestQuorumOfACall(t *testing.T) {
	for _, tt := range []struct{ settings, call, want int }{{2, 0, 2}, {2, 1, 2}, {2, 3, 3}, {1, 2, 2}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, quorum(tt.settings))
			w.open("run", "call", func(q *Request) { q.Quorum = tt.call })
			e, _, err := w.journal.Claimed(t.Context(), ledger.ClaimAsk("run", "call"))
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Body.(*ledger.ApprovalRequested).Quorum; got != tt.want {
				t.Errorf("settings %d, call %d: %d people have to approve, want %d", tt.settings, tt.call, got, tt.want)
			}
		})
	}
}

func ended(r Resolution) string {
	if r.By == nil {
		return fmt.Sprintf("%s %s", r.Type, r.Source)
	}
	return fmt.Sprintf("%s %s %s", r.Type, r.Source, r.By.ID)
}

// However many say yes at once, it ends exactly with the vote that makes the quorum, and every vote is recorded once.
func TestQuorumAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB", "UCAROL", "UDAVE"), quorum(3))
		p := w.open("run", "call")
		wait := w.wait(t.Context(), p)
		var all sync.WaitGroup
		for i := range 90 {
			all.Go(func() {
				_, err := w.ResolveByID(t.Context(), p.ID(), approve([]ledger.Actor{bob, carol, dave}[i%3]))
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		res := wait()
		snap := p.Snapshot()
		people := map[ledger.Person]bool{}
		for _, v := range snap.Ask.Votes {
			people[v.By.Person()] = true
		}
		if len(people) != 3 || len(snap.Ask.Votes) != 3 || res.Type != ledger.Approved {
			t.Errorf("votes %+v, resolution %+v", snap.Ask.Votes, res)
		}
		if last := snap.Ask.Votes[2]; last.By.ID != res.By.ID || !last.At.Equal(res.At) {
			t.Errorf("the last vote is %+v, the resolution %+v", last, res)
		}
	})
}

// A snapshot is of one moment: what happens later doesn't change it.
func TestSnapshotStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB", "UCAROL"), quorum(2))
		p := w.open("run", "call")
		w.shown(p, card)
		first := w.Pending("run")[0]
		again := w.Pending("run")[0]
		w.shown(p, Showing{Surface: "http"})
		if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again, first); diff != "" || len(first.Ask.Votes) != 0 || len(first.Ask.Shown) != 1 {
			t.Error("it changed:", diff)
		}
		if now := w.Pending("run")[0]; len(now.Ask.Votes) != 1 || len(now.Ask.Shown) != 2 {
			t.Errorf("now: %+v", now)
		}
		w.abort(p)
	})
}
