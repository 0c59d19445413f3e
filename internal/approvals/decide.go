package approvals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"approvalbot/internal/ledger"
)

// A question is who may decide something.
type question struct {
	list       Approvers
	origin     string   // what lists them, for people to find an id that is wrong: a setting, rules or a tool; may be empty
	counts     []string // the words of the list that let anybody in at this place, for people to read; nil: all of them
	shut       string   // why the others don't, for somebody whom they would have let in
	quorum     int
	requesters []ledger.Person
	place      ledger.Place
	channels   []string // whose members "channel" means; nil: those of the place
	act        string   // what it is about, for the sentence of a refusal; empty: to approve or deny "this"
	ids        ids      // what it is about, for the log; zero: no run
}

// ids are what every line of the log about a run carries.
type ids struct{ session, run, call, approval string }

// logger is the registry's, for lines about something.
func (i ids) logger(log *slog.Logger) *slog.Logger {
	for _, id := range [][2]string{{"session", i.session}, {"run", i.run}, {"call", i.call}, {"approval", i.approval}} {
		if id[1] != "" {
			log = log.With(id[0], id[1])
		}
	}
	return log
}

// asked tells whether p is one of those whose words led to the question.
func (q question) asked(p ledger.Person) bool {
	return slices.ContainsFunc(q.requesters, func(o ledger.Person) bool { return samePerson(o, p) })
}

// samePerson compares who people are. Where one side doesn't know the team they count as the same: taking a stranger
// for the requester refuses too much, the other way round would let requesters approve.
func samePerson(a, b ledger.Person) bool {
	return a.ID == b.ID && (a.Team == b.Team || a.Team == "" || b.Team == "")
}

func (q question) doing(d Decision) string {
	switch {
	case q.act != "":
		return q.act
	case d.Type == ledger.Denied:
		return "deny this"
	}
	return "approve this"
}

func (q question) refuse(format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...), Allowed: q.counting()}
}

// counting is who may, as it is told to people.
func (q question) counting() []string {
	if q.counts != nil {
		return slices.Clone(q.counts)
	}
	return q.list.List()
}

// What keeps people out whom a list seems to let in, in words that name the setting.
const (
	shutPublic    = "members of a public channel count only if the operator lists it in APPROVALBOT_CHANNELS"
	shutRequester = "whoever asked can't approve it unless the operator lists requester among those who may (APPROVALBOT_APPROVERS, or the rule that asks)"
	shutNobody    = "APPROVALBOT_APPROVERS lists nobody"
)

// at is the question with what the list comes to at its place: where being in the channel means nothing, nobody is to
// read that it does. What can't be looked up is left as it is; it decides nothing.
func (r *Registry) at(ctx context.Context, q question) question {
	q.counts = q.list.List()
	if !q.list.channel {
		return q
	}
	means, shut := r.channelMeans(ctx, q)
	if !means {
		q.shut = shut
		q.counts = slices.DeleteFunc(q.counts, func(word string) bool { return word == "channel" })
	}
	return q
}

// channelMeans tells whether "channel" lets anybody in where it is asked, as far as is known, and where it doesn't, what
// those who are there should know.
func (r *Registry) channelMeans(ctx context.Context, q question) (means bool, shut string) {
	for _, channel := range q.inChannels() {
		counts, closed := r.membersMean(ctx, q, channel)
		if counts {
			return true, ""
		}
		shut = cmp.Or(shut, closed)
	}
	return false, shut
}

// membersMean is channelMeans for one channel.
func (r *Registry) membersMean(ctx context.Context, q question, channel string) (means bool, shut string) {
	info, err := r.directory.Channel(ctx, channel)
	if err != nil {
		return true, ""
	}
	counts, err := r.membersCount(channel, info)
	switch {
	case err != nil:
		return true, ""
	case !counts && info.Kind == PublicChannel && !info.Archived:
		return false, shutPublic
	case !counts:
		return false, ""
	case info.Kind == DirectMessage:
		return !q.asksAlone(ctx, r.directory, channel), ""
	}
	return true, ""
}

// inChannels are the channels whose members "channel" means.
func (q question) inChannels() []string {
	if q.channels != nil || q.place.Channel == "" {
		return q.channels
	}
	return []string{q.place.Channel}
}

// asksAlone tells whether the one person of a direct message is a requester: "channel" is nobody else there.
func (q question) asksAlone(ctx context.Context, d Directory, channel string) bool {
	return slices.ContainsFunc(q.requesters, func(p ledger.Person) bool {
		in, err := d.Member(ctx, channel, p.ID)
		return in && err == nil
	})
}

// mayDecide tells whether somebody may decide, and returns them as they are to be recorded. Every surface's decisions
// pass here, and nothing else decides who may:
//
//   - full members of our workspace only, and whoever can't be looked up in time isn't one;
//   - whoever asked may deny, and may approve only if the list has "requester", however else they are listed;
//   - whoever is listed may approve and deny.
//
// A token of the HTTP API that names no Slack user is a key that the operator gave to a program. It may decide, too,
// but it is nobody's second opinion: it doesn't count where more than one person is needed.
func (r *Registry) mayDecide(ctx context.Context, q question, d Decision) (ledger.Actor, error) {
	switch d.By.Kind {
	case ledger.ActorUser:
		return r.mayUser(ctx, q, d)
	case ledger.ActorToken:
		return d.By, q.mayToken(d)
	}
	return d.By, q.refuse("Only people can %s.", q.doing(d))
}

func (q question) mayToken(d Decision) error {
	asked := q.asked(d.By.Person())
	switch {
	case d.By.ID == "":
		return q.refuse("A token without a name can't %s.", q.doing(d))
	case asked && d.Type == ledger.Denied:
		return nil
	case asked && !q.list.requester:
		return q.refuse("This token asked for it, so somebody else has to approve it.")
	case q.list.Empty():
		return q.refuse("Nobody is listed who may %s.", q.doing(d))
	case q.quorum > 1:
		return q.refuse("This token names no person, so it doesn't count where %d people have to approve.", q.quorum)
	}
	return nil
}

func (r *Registry) mayUser(ctx context.Context, q question, d Decision) (ledger.Actor, error) {
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	by := d.By
	if q.counts == nil {
		q = r.at(lookups, q)
	}
	who, err := r.fullMember(lookups, q, by.Person(), q.doing(d))
	if err == nil {
		err = r.mayMember(lookups, q, d)
	}
	if ctx.Err() != nil {
		return by, fmt.Errorf("not decided: %w", context.Cause(ctx))
	}
	if lookups.Err() != nil { // an answer that came too late is none
		err = r.unknown(q, by.Person(), q.doing(d), lookups.Err())
	}
	return who.actor(by), err
}

// actor is by as the directory knows them, so that one person is recorded in one way by whatever surface they come.
func (p Profile) actor(by ledger.Actor) ledger.Actor {
	if p.ID.Team != "" {
		by.Team = p.ID.Team
	}
	if p.Name != "" {
		by.Name = p.Name
	}
	return by
}

// mayMember decides for a full member of our workspace.
func (r *Registry) mayMember(ctx context.Context, q question, d Decision) error {
	p := d.By.Person()
	if q.asked(p) {
		if d.Type == ledger.Denied || q.list.requester {
			return nil
		}
		return q.refuse("You asked for this, so somebody else has to approve it. You can deny it.")
	}
	return r.mayListed(ctx, q, p, q.doing(d))
}

// mayListed refuses whoever isn't in the question's list.
func (r *Registry) mayListed(ctx context.Context, q question, p ledger.Person, act string) error {
	in, err := r.listed(ctx, q, p)
	switch {
	case in:
		return nil
	case err != nil:
		return r.unknown(q, p, act, err)
	}
	if q.shut != "" {
		return q.refuse("You are not one of those who can %s: %s.", act, q.shut)
	}
	return q.refuse("You are not one of those who can %s.", act)
}

// fullMember returns who p is, or refuses, if they aren't a full member of our workspace.
func (r *Registry) fullMember(ctx context.Context, q question, p ledger.Person, act string) (Profile, error) {
	home := q.home(r.settings)
	if p.ID == "" || home != "" && p.Team == "" {
		return Profile{}, r.unknown(q, p, act, errors.New("the identity is incomplete"))
	}
	if home != "" && p.Team != home {
		return Profile{}, q.refuse("People from other organizations can't %s.", act)
	}
	who, err := r.directory.Person(ctx, p)
	if err == nil && !samePerson(who.ID, p) {
		err = fmt.Errorf("the answer is about %q", who.ID.ID)
	}
	if err != nil {
		return Profile{}, r.unknown(q, p, act, err)
	}
	switch who.Kind {
	case FullMember:
		return who, nil
	case Guest:
		return who, q.refuse("Guests can't %s.", act)
	case External:
		return who, q.refuse("People from other organizations can't %s.", act)
	case Bot:
		return who, q.refuse("Bots can't %s.", act)
	case Deactivated:
		return who, q.refuse("Deactivated users can't %s.", act)
	}
	return who, r.unknown(q, p, act, fmt.Errorf("person kind %q", who.Kind))
}

// home is the workspace that people have to be of.
func (q question) home(s Settings) string {
	if q.place.Team != "" {
		return q.place.Team
	}
	return s.Team
}

// unknown refuses somebody of whom it couldn't be found out whether they may.
func (r *Registry) unknown(q question, p ledger.Person, act string, cause error) error {
	q.ids.logger(r.log).Warn("somebody was refused because they could not be looked up", "team", p.Team, "user", p.ID, "error", cause)
	return q.refuse("It could not be found out whether you can %s, so this doesn't count. Try again in a moment.", act)
}

// listed tells whether a full member is in the list, other than as the requester. The error says that something could
// not be looked up; it matters only if nothing else let them in.
func (r *Registry) listed(ctx context.Context, q question, p ledger.Person) (bool, error) {
	if q.list.members || slices.Contains(q.list.users, p.ID) {
		return true, nil
	}
	var unknown []error
	if q.list.channel {
		for _, channel := range q.inChannels() {
			in, err := r.inChannel(ctx, channel, p.ID)
			if in {
				return true, nil
			}
			unknown = append(unknown, err)
		}
	}
	for _, g := range q.list.groups {
		users, err := r.directory.Group(ctx, g)
		if err == nil && slices.Contains(users, p.ID) {
			return true, nil
		}
		if !errors.Is(err, ErrNoSuch) { // a group that isn't there has no members, today and in a moment
			unknown = append(unknown, err)
		}
	}
	return false, errors.Join(unknown...)
}

func (r *Registry) inChannel(ctx context.Context, channel, user string) (bool, error) {
	info, err := r.directory.Channel(ctx, channel)
	if err != nil {
		return false, err
	}
	counts, err := r.membersCount(channel, info)
	if !counts || err != nil {
		return false, err
	}
	in, err := r.directory.Member(ctx, channel, user)
	return in && err == nil, err
}

// membersCount tells whether being in a channel means anything: anyone can join a public one, so there it does only
// where the operator says so, by listing it or by choosing it as the approvals channel.
func (r *Registry) membersCount(channel string, info ChannelInfo) (bool, error) {
	switch info.Kind {
	case PublicChannel:
		return !info.Archived && (slices.Contains(r.settings.OpenChannels, channel) || channel == r.settings.Channel), nil
	case PrivateChannel, DirectMessage, GroupMessage:
		return !info.Archived, nil
	}
	return false, fmt.Errorf("channel kind %q", info.Kind)
}

// MayStart tells whether somebody may start runs from a channel; if not, the error is a [*RefusedError].
func (r *Registry) MayStart(ctx context.Context, person ledger.Person, channel string) error {
	const act = "start runs here"
	q := question{list: r.settings.Requesters, place: ledger.Place{Channel: channel}}
	lookups, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	q = r.at(lookups, q)
	_, err := r.fullMember(lookups, q, person, act)
	if err == nil {
		err = r.mayListed(lookups, q, person, act)
	}
	if err == nil && lookups.Err() != nil {
		err = r.unknown(q, person, act, lookups.Err())
	}
	return err
}

// MayStop tells whether somebody may stop a run: its requesters, those who may decide, by the settings or one of its pending
// asks, and operators. If not, the error is a [*RefusedError].
func (r *Registry) MayStop(ctx context.Context, by ledger.Actor, run *ledger.Run) error {
	q := question{
		list: r.settings.Approvers, quorum: 1, requesters: append(slices.Clip(run.Started.Requesters), run.StartedBy.Person()), place: run.Started.Place,
		channels: r.anywhere(ctx, run.Started.Place), act: "stop this run", ids: ids{session: run.Session, run: run.ID},
	}
	_, err := r.mayDecide(ctx, q, Decision{Type: ledger.Denied, By: by})
	if err != nil && r.mayStopAsks(ctx, by, run.ID) {
		return nil
	}
	return err
}

// inWords is a duration as people say it: "2 minutes", "90 seconds".
func inWords(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}}
	for _, u := range units {
		n := d / u.size
		switch {
		case n == 0 || d%u.size != 0:
			continue
		case n == 1:
			return "1 " + u.name
		}
		return fmt.Sprintf("%d %ss", n, u.name)
	}
	return d.String()
}
