package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"approvalbot/internal/ledger"
)

// Where an ask stands. It always stands where its run talks. With an approvals channel it stands there, too, or there
// only. Where the people of these places aren't enough to approve it, it goes to those who may, by direct message: nobody
// is to wait for an answer that can't come, nor to find out by accident that they were asked. All of that is decided when
// the ask is opened and recorded with it, so that it is rendered from the journal alone.

// A Courier is a directory that also knows where we can write. With one, an ask finds those who may approve it although
// they aren't where it was asked; without one, the approvals channel is believed to be there.
type Courier interface {
	// CanPost tells whether we can write into a channel.
	CanPost(ctx context.Context, channel string) (bool, error)
	// DirectMessage is our conversation with a person; it is made if there is none. An [ErrNoWay] says that there can't be.
	DirectMessage(ctx context.Context, user string) (channel string, err error)
}

// ErrNoWay says that somebody can't be written to, and that trying again won't help.
var ErrNoWay = errors.New("no direct message can be sent")

// surfaceSlack is the surface of everything that stands in Slack.
const surfaceSlack = "slack"

const (
	// directMost is how many people one ask is sent to directly.
	directMost = 10

	// namesMost bounds the look-ups of names.
	namesMost = 20
)

// A stand is where an ask stands besides its run's own place. Once the ask is opened the journal's event has all of this, so
// that it isn't kept twice.
type stand struct {
	surfaces  []string // who has to show it
	elsewhere []ledger.Place
	only      bool
	away      bool
	names     map[string]string
	shut      string // why those who may approve can't be reached; empty: they can, or that isn't known
}

// place finds out where an ask will stand, and gives the question with the channels whose members count: those in which
// it has buttons.
func (r *Registry) place(ctx context.Context, q Request, who question) (stand, question) {
	s := r.channels(ctx, q.Place.Channel)
	who.channels = s.buttons(q.Place)
	if len(who.channels) > 0 {
		s.away = q.Place.Channel != "" && !s.only && !r.enoughIn(ctx, who, q.Place.Channel)
		if (s.away || s.only || q.Place.Channel == "") && !r.enoughIn(ctx, who, who.channels...) {
			r.direct(ctx, who, &s)
		}
	}
	if len(s.elsewhere) > 0 || len(r.settings.Notify) > 0 {
		s.names = r.names(ctx, who, s)
	}
	return s, who
}

// channels is the part of a stand that the settings decide.
func (r *Registry) channels(ctx context.Context, home string) stand {
	channel := r.settings.Channel
	if channel == "" || channel == home || !r.canPost(ctx, channel) {
		return stand{}
	}
	return stand{
		elsewhere: []ledger.Place{{Team: r.settings.Team, Channel: channel}},
		only:      r.settings.Only && home != "",
	}
}

// canPost tells whether we can write into a channel; where that isn't known, it is tried.
func (r *Registry) canPost(ctx context.Context, channel string) bool {
	c, ok := r.directory.(Courier)
	if !ok {
		return true
	}
	can, err := c.CanPost(ctx, channel)
	if errors.Is(err, ErrNoSuch) {
		can, err = false, nil
	}
	if err == nil && !can {
		r.log.Warn("the approvals channel can't be written to, so cards stand in their threads only: invite the bot there", "channel", channel)
	}
	return can || err != nil
}

// buttons are the channels in which an ask has buttons. A direct message with somebody who was sought out is none of
// them: whoever is in it is listed otherwise.
func (s stand) buttons(home ledger.Place) []string {
	channels := []string{} // not nil: nowhere is an answer, too
	if home.Channel != "" && !s.only {
		channels = append(channels, home.Channel)
	}
	return append(channels, channelsOf(s.elsewhere)...)
}

// channelsOf are those among some places that aren't direct messages.
func channelsOf(places []ledger.Place) (channels []string) {
	for _, p := range places {
		if p.User == "" {
			channels = append(channels, p.Channel)
		}
	}
	return channels
}

// standsIn are the channels in which an ask of the journal has buttons.
func standsIn(a *ledger.Approval) []string {
	return stand{elsewhere: a.Elsewhere, only: a.Only}.buttons(a.Place)
}

// anywhere are the channels in which asks of a run that talks at a place have buttons.
func (r *Registry) anywhere(ctx context.Context, home ledger.Place) []string {
	return r.channels(ctx, home.Channel).buttons(home)
}

// enoughIn tells whether enough people are in some channels who could approve; also where that can't be found out.
func (r *Registry) enoughIn(ctx context.Context, who question, channels ...string) bool {
	within, known := r.within(ctx, channels)
	if !known {
		return true
	}
	who.channels = channels
	c := census{r: r, q: who, able: map[string]bool{}, within: within}
	c.count(ctx)
	return c.enough()
}

// within are the people of some channels; false: it isn't known who they are.
func (r *Registry) within(ctx context.Context, channels []string) (map[string]bool, bool) {
	roster, ok := r.directory.(Roster)
	if !ok {
		return nil, false
	}
	within := map[string]bool{}
	for _, channel := range channels {
		members, err := roster.Members(ctx, channel)
		if err != nil && !errors.Is(err, ErrNoSuch) {
			return nil, false
		}
		for _, m := range members {
			within[m] = true
		}
	}
	return within, true
}

// direct sends an ask to those who are named and aren't where it stands.
func (r *Registry) direct(ctx context.Context, who question, s *stand) {
	courier, ok := r.directory.(Courier)
	if !ok {
		return
	}
	within, _ := r.within(ctx, who.channels)
	seek := r.absent(ctx, who, within)
	var why []string
	sure := true
	for len(seek) > 0 && len(s.elsewhere) < directMost {
		some := seek[:min(len(seek), directMost-len(s.elsewhere))]
		seek = seek[len(some):]
		for i, l := range r.lettersTo(ctx, courier, who, some) {
			switch {
			case l.err == nil:
				s.elsewhere = append(s.elsewhere, ledger.Place{Team: who.home(r.settings), Channel: l.channel, User: some[i]})
			case errors.Is(l.err, ErrNoWay), errors.Is(l.err, ErrNoSuch):
				why = append(why, fmt.Sprintf("%s: %v", some[i], l.err))
			case !errors.Is(l.err, errNoApprover):
				sure = false
				r.log.Warn("somebody who may approve could not be sought out", "user", some[i], "error", l.err)
			}
		}
	}
	if sure && len(s.elsewhere) == 0 && len(why) > 0 {
		s.shut = "nobody who may approve it is in this conversation, and none of them can be written to (" + strings.Join(why, "; ") + ")"
	}
}

// errNoApprover: somebody who is listed, and doesn't count.
var errNoApprover = errors.New("not one of those who count")

// absent are those who are listed by their ids, or in groups, and aren't among some people.
func (r *Registry) absent(ctx context.Context, who question, within map[string]bool) (ids []string) {
	all := slices.Clone(who.list.users)
	for _, g := range who.list.groups {
		members, _ := r.directory.Group(ctx, g) // whom that leaves out is asked by the mention of the group
		all = append(all, members...)
	}
	for _, id := range all {
		own := who.asked(ledger.Person{Team: who.home(r.settings), ID: id}) && !who.list.requester
		if !own && !within[id] && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// A letter is a conversation with somebody, or why there is none.
type letter struct {
	channel string
	err     error
}

// lettersTo opens the conversations with some people, at once.
func (r *Registry) lettersTo(ctx context.Context, c Courier, who question, users []string) []letter {
	letters := make([]letter, len(users))
	var wg sync.WaitGroup
	for i, id := range users {
		wg.Go(func() {
			p, err := r.directory.Person(ctx, ledger.Person{Team: who.home(r.settings), ID: id})
			if err == nil && p.Kind != FullMember && p.Kind != UnknownPerson {
				letters[i].err = errNoApprover
				return
			}
			letters[i].channel, letters[i].err = c.DirectMessage(ctx, id)
		})
	}
	wg.Wait()
	return letters
}

// names are what people are called who are named on a card; of those who can't be looked up there are none.
func (r *Registry) names(ctx context.Context, who question, s stand) map[string]string {
	ids := slices.Clone(who.list.users)
	for _, p := range s.elsewhere {
		if p.User != "" && !slices.Contains(ids, p.User) {
			ids = append(ids, p.User)
		}
	}
	ids = ids[:min(len(ids), namesMost)]
	found := make([]string, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			if p, err := r.directory.Person(ctx, ledger.Person{Team: who.home(r.settings), ID: id}); err == nil {
				found[i] = p.Name
			}
		})
	}
	wg.Wait()
	names := map[string]string{}
	for i, name := range found {
		if name != "" {
			names[ids[i]] = name
		}
	}
	return names
}

// notify is whom the messages of an ask mention, as it is recorded.
func (s Settings) notify() []string {
	if len(s.Notify) == 1 && s.Notify[0] == "approvers" {
		return nil
	}
	return slices.Clone(s.Notify)
}
