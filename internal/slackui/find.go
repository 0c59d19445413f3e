package slackui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

const (
	// listLimit bounds the reading of a list that may have many pages.
	listLimit = 20 * time.Second

	// findMost is how many people a search for a name gives.
	findMost = 20
)

// A Found is an account that a name may mean, in text that can be shown.
type Found struct {
	ID     string
	Name   string
	Handle string
	Kind   string // in words
}

// kindWords say what an account is.
var kindWords = map[approvals.PersonKind]string{
	approvals.FullMember: "full member", approvals.Guest: "guest", approvals.External: "from another organization",
	approvals.Bot: "bot", approvals.Deactivated: "deactivated",
}

// Find lists the accounts of the workspace that an id, a name, or a part of a name
// means, the likeliest first, and whether there are more. Errors are *PostError.
func (u *UI) Find(ctx context.Context, query string) (people []Found, more bool, err error) {
	if userID.MatchString(query) {
		switch person, err := u.user(ctx, query); e := err.(type) {
		case nil:
			return []Found{u.found(person)}, false, nil
		case *PostError:
			if !e.Missing {
				return nil, false, err
			}
		} // no id then, perhaps a name
	}
	all, err := lookFor(ctx, u.client.directory, "people", listLimit, func(ctx context.Context) ([]slack.User, error) {
		return u.client.api.GetUsersContext(ctx, slack.GetUsersOptionLimit(membersPage))
	})
	if err != nil {
		return nil, false, &PostError{Message: fmt.Sprintf("Slack didn't list its people (%s).", said(err))}
	}
	type ranked struct {
		rank int
		user *slack.User
	}
	var matches []ranked
	for i := range all {
		if rank := resemblance(&all[i], query); rank > 0 && !all[i].Deleted {
			matches = append(matches, ranked{rank, &all[i]})
		}
	}
	slices.SortFunc(matches, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(displayName(a.user), displayName(b.user)), cmp.Compare(a.user.ID, b.user.ID))
	})
	for i, m := range matches {
		if i == findMost {
			return people, true, nil
		}
		people = append(people, u.found(m.user))
	}
	return people, false, nil
}

// resemblance ranks how well a query names somebody: 1 is best, 0 not at all.
func resemblance(u *slack.User, query string) int {
	best := 0
	query = strings.ToLower(query)
	for _, name := range aliases(u) {
		rank := 0
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "":
		case name == query:
			rank = 1
		case strings.HasPrefix(name, query):
			rank = 2
		case strings.Contains(name, query):
			rank = 3
		}
		if rank > 0 && (best == 0 || rank < best) {
			best = rank
		}
	}
	return best
}

// found is an account in words. People choose their names, so they are untrusted.
func (u *UI) found(user *slack.User) Found {
	kind := kindWords[u.client.directory.kind(ledger.Person{ID: user.ID}, user)]
	if kind == "" {
		kind = "unknown"
	}
	return Found{ID: user.ID, Name: u.renderer.line(displayName(user), maxNameChars), Handle: u.renderer.line(user.Name, maxNameChars), Kind: kind}
}
