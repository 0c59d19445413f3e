package approvals

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
)

// Every cell of who may decide: alice asked, the card stands somewhere, somebody clicks.
func TestWhoMayDecide(t *testing.T) {
	const (
		yes       = "" // approves and denies
		denies    = "You asked for this, so somebody else has to approve it. You can deny it."
		unlisted  = "You are not one of those who can approve this."
		public    = "You are not one of those who can approve this: " + shutPublic + "."
		aGuest    = "Guests can't approve this."
		aBot      = "Bots can't approve this."
		inactive  = "Deactivated users can't approve this."
		outsider  = "People from other organizations can't approve this."
		uncertain = "It could not be found out whether you can approve this, so this doesn't count. Try again in a moment."
	)
	// Whoever is not a full member is refused in the same way everywhere.
	never := map[string]string{
		"guest": aGuest, "bot": aBot, "gone": inactive, "shared": outsider, "foreign": outsider,
		"nobody": uncertain, "strange": uncertain, "teamless": uncertain, "nameless": uncertain,
	}
	who := map[string]ledger.Actor{
		"alice": alice, "bob": bob, "carol": carol, "dave": dave, "guest": guest, "bot": bot, "gone": gone,
		"shared": shared, "foreign": foreign, "nobody": nobody, "strange": strange,
		"teamless": {Kind: ledger.ActorUser, ID: "UBOB"}, "nameless": {Kind: ledger.ActorUser, Team: team},
	}
	tests := []struct {
		approvers string
		channel   string
		want      map[string]string // of the full members
	}{
		{"requester", "CPRIVATE", map[string]string{"alice": yes, "bob": unlisted, "carol": unlisted, "dave": unlisted}},
		{"channel", "CPRIVATE", map[string]string{"alice": denies, "bob": yes, "carol": unlisted, "dave": unlisted}},
		{"requester,channel", "CPRIVATE", map[string]string{"alice": yes, "bob": yes, "carol": unlisted, "dave": unlisted}},
		{"channel", "CMPIM", map[string]string{"alice": denies, "bob": yes, "dave": unlisted}},
		{"channel", "COPEN", map[string]string{"alice": denies, "bob": yes, "dave": unlisted}},
		{"channel", "CPUBLIC", map[string]string{"alice": denies, "bob": public, "dave": public}},
		{"channel", "COLD", map[string]string{"alice": denies, "bob": unlisted}},
		{"channel", "CODD", map[string]string{"alice": denies, "bob": uncertain}},
		{"channel", "CNONE", map[string]string{"alice": denies, "bob": uncertain}},
		{"channel", "", map[string]string{"alice": denies, "bob": unlisted}},
		{"requester,channel", "DALICE", map[string]string{"alice": yes, "bob": unlisted}},
		{"channel", "DALICE", map[string]string{"alice": denies, "bob": unlisted}},
		{"UBOB", "CPUBLIC", map[string]string{"alice": denies, "bob": yes, "carol": unlisted, "dave": unlisted}},
		{"UALICE,UDAVE", "CPUBLIC", map[string]string{"alice": denies, "bob": unlisted, "dave": yes}},
		{"UGUEST,UBOT,UGONE,USHARED,USTRANGE,UNOBODY", "CPUBLIC", map[string]string{"alice": denies, "bob": unlisted}},
		{"SONCALL", "CPUBLIC", map[string]string{"alice": denies, "bob": unlisted, "carol": yes, "dave": unlisted}},
		{"SLOST", "CPUBLIC", map[string]string{"alice": denies, "bob": uncertain}},
		{"SLOST,UBOB", "CPUBLIC", map[string]string{"bob": yes, "carol": uncertain}},
		{"SLOST,SONCALL", "CPUBLIC", map[string]string{"bob": uncertain, "carol": yes}},
		{"SNONE", "CPUBLIC", map[string]string{"alice": denies, "bob": unlisted}},
		{"SNONE,SLOST", "CPUBLIC", map[string]string{"bob": uncertain}},
		{"SNONE,SONCALL", "CPUBLIC", map[string]string{"bob": unlisted, "carol": yes}},
		{"channel,UDAVE,SONCALL,requester", "COPEN", map[string]string{"alice": yes, "bob": yes, "carol": yes, "dave": yes}},
	}
	for _, tt := range tests {
		t.Run(tt.approvers+" in "+tt.channel, func(t *testing.T) {
			w := newWorld(t)
			q := question{
				list: list(t, strings.Split(tt.approvers, ",")...), quorum: 1,
				requesters: []ledger.Person{alice.Person()}, place: ledger.Place{Team: team, Channel: tt.channel},
			}
			said := q.list.List() // who is said to be able to: not the channel, where being in it means nothing
			if slices.Contains([]string{"", "CPUBLIC", "COLD", "DALICE"}, tt.channel) {
				said = slices.DeleteFunc(said, func(word string) bool { return word == "channel" })
			}
			for name, refusal := range merged(tt.want, never) {
				_, err := w.mayDecide(t.Context(), q, approve(who[name]))
				w.check(name+" approves", err, refusal, said)
				if refusal == denies {
					refusal = yes
				}
				_, err = w.mayDecide(t.Context(), q, deny(who[name], ""))
				w.check(name+" denies", err, strings.Replace(refusal, "approve this", "deny this", 1), said)
			}
		})
	}
}

func merged(a, b map[string]string) map[string]string {
	m := map[string]string{}
	for _, x := range []map[string]string{a, b} {
		for k, v := range x {
			m[k] = v
		}
	}
	return m
}

func (w *world) check(what string, err error, refusal string, allowed []string) {
	w.Helper()
	if refusal == "" {
		if err != nil {
			w.Errorf("%s: %v", what, err)
		}
		return
	}
	e, ok := errors.AsType[*RefusedError](err)
	if !ok {
		w.Errorf("%s: got %v, want a refusal", what, err)
		return
	}
	if diff := cmp.Diff(&RefusedError{Reason: refusal, Allowed: allowed}, e); diff != "" {
		w.Errorf("%s: (-want +got): %s", what, diff)
	}
}

// Everyone whose words entered the instructions is a requester, whether they wrote first or last.
func TestAllRequestersAreRequesters(t *testing.T) {
	w := newWorld(t)
	q := question{list: list(t, "channel"), quorum: 1, place: ledger.Place{Team: team, Channel: "CPRIVATE"},
		requesters: []ledger.Person{alice.Person(), bob.Person()}}
	for _, by := range []ledger.Actor{alice, bob, {Kind: ledger.ActorUser, Team: team, ID: "UALICE", Via: "http"}} {
		_, err := w.mayDecide(t.Context(), q, approve(by))
		wantRefused(t, err)
		if _, err := w.mayDecide(t.Context(), q, deny(by, "")); err != nil {
			t.Errorf("%s may not deny: %v", by.ID, err)
		}
	}
	// A requester who is known without a team doesn't become another person by having one.
	q.requesters = []ledger.Person{{ID: "UBOB"}}
	_, err := w.mayDecide(t.Context(), q, approve(bob))
	wantRefused(t, err)
	q.place.Team, w.settings.Team = "", ""
	w.restart()
	q.requesters = []ledger.Person{bob.Person()}
	_, err = w.mayDecide(t.Context(), q, approve(ledger.Actor{Kind: ledger.ActorUser, ID: "UBOB"}))
	wantRefused(t, err)
}

func TestTokens(t *testing.T) {
	const noPerson = "This token names no person, so it doesn't count where 2 people have to approve."
	const askedItself = "This token asked for it, so somebody else has to approve it."
	tests := map[string]struct {
		approvers     []string
		quorum        int
		asked         bool
		by            ledger.Actor
		approve, deny string
	}{
		"one suffices":            {[]string{"UBOB"}, 1, false, token, "", ""},
		"two are needed":          {[]string{"UBOB"}, 2, false, token, noPerson, noPerson},
		"asked itself":            {[]string{"UBOB"}, 1, true, token, askedItself, ""},
		"asked, of two":           {[]string{"UBOB"}, 2, true, token, askedItself, ""},
		"asked, may":              {[]string{"requester"}, 1, true, token, "", ""},
		"asked, may, two needed":  {[]string{"requester"}, 2, true, token, noPerson, ""},
		"nobody is listed":        {nil, 1, false, token, "Nobody is listed who may approve this.", "Nobody is listed who may deny this."},
		"without a name":          {[]string{"UBOB"}, 1, false, ledger.Actor{Kind: ledger.ActorToken}, "A token without a name can't approve this.", "A token without a name can't deny this."},
		"the model":               {[]string{"UBOB"}, 1, false, ledger.Actor{Kind: ledger.ActorModel, ID: "UBOB"}, "Only people can approve this.", "Only people can deny this."},
		"approvalbot itself":      {[]string{"UBOB"}, 1, false, ledger.System, "Only people can approve this.", "Only people can deny this."},
		"nobody in particular":    {[]string{"UBOB"}, 1, false, ledger.Actor{}, "Only people can approve this.", "Only people can deny this."},
		"named like a user of us": {[]string{"UBOB"}, 2, false, ledger.Actor{Kind: ledger.ActorToken, Team: team, ID: "UBOB"}, noPerson, noPerson},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			q := question{quorum: tt.quorum, place: ledger.Place{Team: team, Channel: "CPRIVATE"}}
			if tt.approvers != nil {
				q.list = list(t, tt.approvers...)
			}
			if tt.asked {
				q.requesters = []ledger.Person{tt.by.Person()}
			}
			_, err := w.mayDecide(t.Context(), q, approve(tt.by))
			w.check("approve", err, tt.approve, q.list.List())
			_, err = w.mayDecide(t.Context(), q, deny(tt.by, ""))
			w.check("deny", err, tt.deny, q.list.List())
		})
	}
}

// A refusal leaves the ask as it is.
func TestRefusalChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		w.shown(p, card)
		before, appended := w.Pending(""), w.journal.appended
		for _, by := range []ledger.Actor{alice, carol, guest, bot, shared, foreign, nobody, ledger.System} {
			_, err := w.ResolveByID(t.Context(), p.ID(), approve(by))
			wantRefused(t, err)
		}
		if diff := cmp.Diff(before, w.Pending("")); diff != "" || w.journal.appended != appended {
			t.Errorf("%d appends, %s", w.journal.appended-appended, diff)
		}
		if out, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil || out.Resolution == nil {
			t.Errorf("the right one: %+v, %v", out, err)
		}
		p.Wait(t.Context())
	})
}

func TestSlowDirectory(t *testing.T) {
	tests := map[string]struct {
		delay time.Duration // of each look-up; two are needed
		took  time.Duration
		in    bool
	}{
		"in time":       {900 * time.Millisecond, 1800 * time.Millisecond, true},
		"just too late": {1001 * time.Millisecond, 2 * time.Second, false},
		"far too late":  {time.Hour, 2 * time.Second, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, approvers(t, "SONCALL"))
				p := w.open("run", "call")
				w.book.spoil(tt.delay, nil)
				start := time.Now()
				_, err := w.ResolveByID(t.Context(), p.ID(), approve(carol))
				if took := time.Since(start); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if tt.in != (err == nil) {
					t.Errorf("got %v", err)
				}
				if !tt.in {
					wantRefused(t, err)
				}
				w.abort(p)
			})
		})
	}
}

// A directory that doesn't give up in time gains nothing by it.
func TestDirectoryIgnoresTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, approvers(t, "UBOB"))
		w.Registry = New(w.journal, deaf{w.book}, w.settings, w.log)
		w.book.spoil(3*time.Second, nil)
		_, err := w.mayDecide(t.Context(), question{list: w.settings.Approvers, quorum: 1}, approve(bob))
		wantRefused(t, err)
		wantRefused(t, w.MayStart(t.Context(), bob.Person(), "CPUBLIC"))
	})
}

type deaf struct{ *book }

func (d deaf) Person(ctx context.Context, p ledger.Person) (Profile, error) {
	return d.book.Person(context.WithoutCancel(ctx), p)
}

// Opening doesn't wait longer for look-ups than a decision, and asks all the same.
func TestSlowOrFailingDirectoryAtOpen(t *testing.T) {
	for name, fault := range map[string]struct {
		delay time.Duration
		err   error
		took  time.Duration
	}{"slow": {time.Hour, nil, 2 * time.Second}, "failing": {0, errors.New("ratelimited"), 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, approvers(t, "UBOB", "SONCALL", "channel"))
				w.book.spoil(fault.delay, fault.err)
				start := time.Now()
				p := w.open("run", "call")
				if took := time.Since(start); took != fault.took {
					t.Errorf("it took %v", took)
				}
				if showBy := p.Snapshot().Ask.ShowBy; !showBy.Equal(time.Now().Add(time.Minute)) {
					t.Errorf("to be shown by %v", showBy)
				}
				_, err := w.ResolveByID(t.Context(), p.ID(), approve(bob))
				wantRefused(t, err)
				w.book.spoil(0, nil)
				if _, err := w.ResolveByID(t.Context(), p.ID(), approve(bob)); err != nil {
					t.Error("the directory is well again:", err)
				}
				p.Wait(t.Context())
			})
		})
	}
}

// The clicker's own context ends while people are looked up: that is no refusal.
func TestDeciderGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.open("run", "call")
		w.book.spoil(time.Hour, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.ResolveByID(ctx, p.ID(), approve(bob))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if n := len(w.Pending("")); n != 1 {
			t.Errorf("%d are pending", n)
		}
		w.abort(p)
	})
}

// An answer about somebody else is no answer.
func TestDirectoryAnswersAboutAnother(t *testing.T) {
	w := newWorld(t)
	w.Registry = New(w.journal, liar{w.book}, w.settings, w.log)
	_, err := w.mayDecide(t.Context(), question{list: list(t, "UDAVE"), quorum: 1}, approve(dave))
	wantRefused(t, err)
}

type liar struct{ *book }

func (l liar) Person(ctx context.Context, _ ledger.Person) (Profile, error) {
	return l.book.Person(ctx, bob.Person())
}

// Where nobody could approve, nobody is kept waiting.
func TestHopeless(t *testing.T) {
	tests := map[string]struct {
		approvers string
		channel   string
		quorum    int
		surfaces  []string
		roster    bool
		rule      string // whose approvers they are; empty: the setting's
		want      string
	}{
		"one listed":                    {approvers: "UBOB"},
		"requester may":                 {approvers: "requester"},
		"somebody may be there":         {approvers: "channel"},
		"the requester alone is listed": {approvers: "UALICE", want: shutRequester},
		"only a guest":                  {approvers: "UGUEST", want: "UGUEST is a guest, and only full members count (APPROVALBOT_APPROVERS)"},
		"a guest, and one unreadable":   {approvers: "UGUEST,USTRANGE"},
		"one who isn't there":           {approvers: "UNOBODY", want: "there is nobody with the id UNOBODY (APPROVALBOT_APPROVERS)"},
		"one who is, and one who isn't": {approvers: "UBOB,UNOBODY"},
		"two of one, and one unknown":   {approvers: "UBOB,USTRANGE", quorum: 2},
		"three of one, and one unknown": {approvers: "UBOB,USTRANGE", quorum: 3, want: "3 people have to approve, and only 2 could"},
		"two, of whom one isn't there":  {approvers: "UBOB,UNOBODY", quorum: 2, want: "2 people have to approve, and only 1 could: there is nobody with the id UNOBODY (APPROVALBOT_APPROVERS)"},
		"empty group":                   {approvers: "SEMPTY", want: "the user group SEMPTY has no members (APPROVALBOT_APPROVERS)"},
		"group with one who can":        {approvers: "SONCALL"},
		"a group that isn't there":      {approvers: "SNONE", want: "there is no user group with the id SNONE (APPROVALBOT_APPROVERS)"},
		"a group of a rule":             {approvers: "SNONE", rule: "rules: four-eyes", want: "there is no user group with the id SNONE (rules: four-eyes)"},
		"a group of an action":          {approvers: "SNONE", rule: "tool: shell", want: "there is no user group with the id SNONE (tool: shell)"},
		"a group of an unforced action": {approvers: "SNONE", rule: "approvalPolicy=strict", want: "there is no user group with the id SNONE (tool: shell)"},
		"a group that can't be read":    {approvers: "SLOST", quorum: 2},
		"two of one":                    {approvers: "SONCALL,UBOB", quorum: 3, want: "3 people have to approve, and only 2 could: " + shutRequester},
		"two of two":                    {approvers: "SONCALL,UBOB", quorum: 2},
		"twice the same person":         {approvers: "SONCALL,UCAROL", quorum: 2, want: "2 people have to approve, and only 1 could: " + shutRequester},
		"public channel":                {approvers: "channel", channel: "CPUBLIC", want: shutPublic},
		"public, and one listed":        {approvers: "channel,UBOB", channel: "CPUBLIC"},
		"open channel":                  {approvers: "channel", channel: "COPEN"},
		"archived":                      {approvers: "channel", channel: "COLD", want: "the channel is archived"},
		"odd channel":                   {approvers: "channel", channel: "CODD"},
		"unknown channel":               {approvers: "channel", channel: "CNONE"},
		"direct message":                {approvers: "channel", channel: "DALICE", want: "nobody else is in this conversation"},
		"direct message, requester may": {approvers: "channel,requester", channel: "DALICE"},
		"no channel":                    {approvers: "channel", channel: "-", want: "it stands in no channel"},
		"no surface":                    {approvers: "UBOB", surfaces: []string{}, want: "there is nowhere to ask"},
		"a token may":                   {approvers: "UALICE", surfaces: []string{"slack", "http"}},
		"a token doesn't count":         {approvers: "UALICE", surfaces: []string{"http"}, quorum: 2, want: shutRequester},
		"roster: bob is there":          {approvers: "channel", roster: true},
		"roster: bob is there alone":    {approvers: "channel", roster: true, quorum: 2},
		"roster: direct message":        {approvers: "channel", channel: "DALICE", roster: true, want: shutRequester},
		"roster: two, of whom one asks": {approvers: "channel", channel: "CTWO", roster: true, quorum: 2, want: "2 people have to approve, and only 1 could: " + shutRequester},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, approvers(t, strings.Split(tt.approvers, ",")...), quorum(tt.quorum))
				w.book.channels["CTWO"] = ChannelInfo{Kind: PrivateChannel}
				w.book.in["CTWO"] = []string{"UALICE", "UBOT", "UBOB", "UGUEST"}
				if tt.roster {
					w.Registry = New(w.journal, rosterBook{w.book}, w.settings, w.log)
				}
				start := time.Now()
				p := w.open("run", "call", func(q *Request) {
					switch tt.channel {
					case "":
					case "-":
						q.Place = ledger.Place{}
					default:
						q.Place.Channel = tt.channel
					}
					if tt.surfaces != nil {
						q.Surfaces = tt.surfaces
					}
					if tt.rule != "" {
						q.Approvers, q.Rule = strings.Split(tt.approvers, ","), tt.rule
					}
				})
				if got := p.Snapshot().Ask.Dismissed; got != tt.want {
					t.Fatalf("dismissed as %q, want %q", got, tt.want)
				}
				if tt.want == "" {
					w.abort(p)
					return
				}
				if n := len(w.Pending("")); n != 0 {
					t.Errorf("%d are pending", n)
				}
				res := p.Wait(t.Context())
				if res.Source != ledger.SourceUndeliverable || res.Reason != tt.want || time.Since(start) != 0 {
					t.Errorf("after %v: %+v", time.Since(start), res)
				}
			})
		})
	}
	t.Run("no approvers", func(t *testing.T) {
		w := newWorld(t, func(s *Settings) { s.Approvers = Approvers{} })
		if res := w.open("run", "call").Wait(t.Context()); res.Reason != shutNobody {
			t.Errorf("%+v", res)
		}
	})
}

// Who is said to be able to approve is who is, where it is asked.
func TestWhoCountsHere(t *testing.T) {
	for name, tt := range map[string]struct {
		list, channel string
		want          []string
		carol         string // what a member who isn't let in is told; empty: she may
	}{
		"private channel":         {"channel,requester", "CPRIVATE", []string{"channel", "requester"}, ""},
		"listed public channel":   {"channel,requester", "COPEN", []string{"channel", "requester"}, ""},
		"public channel":          {"channel,requester", "CPUBLIC", []string{"requester"}, "You are not one of those who can approve this: " + shutPublic + "."},
		"public, somebody listed": {"UBOB,channel", "CPUBLIC", []string{"UBOB"}, "You are not one of those who can approve this: " + shutPublic + "."},
		"direct message":          {"channel,requester", "DALICE", []string{"requester"}, "You are not one of those who can approve this."},
		"nowhere":                 {"channel,requester", "", []string{"requester"}, "You are not one of those who can approve this."},
		"unknown channel":         {"channel,requester", "CNONE", []string{"channel", "requester"}, "It could not be found out whether you can approve this, so this doesn't count. Try again in a moment."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, approvers(t, strings.Split(tt.list, ",")...))
			w.book.in["CPRIVATE"] = append(w.book.in["CPRIVATE"], carol.ID)
			w.book.in["COPEN"] = append(w.book.in["COPEN"], carol.ID)
			p := w.open("run", "call", func(q *Request) { q.Place.Channel = tt.channel })
			defer w.abort(p)
			if diff := cmp.Diff(tt.want, p.Snapshot().Ask.Approvers); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
			_, err := w.ResolveByID(t.Context(), p.ID(), approve(carol))
			if tt.carol == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if diff := cmp.Diff(&RefusedError{Reason: tt.carol, Allowed: tt.want}, wantRefused(t, err)); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMayStart(t *testing.T) {
	requesters := func(words ...string) func(*Settings) {
		return func(s *Settings) {
			if len(words) == 0 {
				return
			}
			var err error
			if s.Requesters, err = ParseRequesters(words); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		requesters []string
		channel    string
		may        []ledger.Actor
		mayNot     []ledger.Actor
	}{
		"by default full members": {nil, "CPUBLIC", []ledger.Actor{alice, dave}, []ledger.Actor{guest, bot, gone, shared, foreign, nobody, strange, {}}},
		"members":                 {[]string{"members"}, "CPUBLIC", []ledger.Actor{alice, dave}, []ledger.Actor{guest, foreign}},
		"channel":                 {[]string{"channel"}, "CPRIVATE", []ledger.Actor{alice, bob}, []ledger.Actor{dave, guest}},
		"direct message":          {[]string{"channel"}, "DALICE", []ledger.Actor{alice}, []ledger.Actor{bob}},
		"users and groups":        {[]string{"UBOB", "UGUEST", "SONCALL"}, "CPUBLIC", []ledger.Actor{alice, bob, carol}, []ledger.Actor{dave, guest}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, requesters(tt.requesters...))
			for _, a := range tt.may {
				if err := w.MayStart(t.Context(), a.Person(), tt.channel); err != nil {
					t.Errorf("%s: %v", a.ID, err)
				}
			}
			for _, a := range tt.mayNot {
				if e := wantRefused(t, w.MayStart(t.Context(), a.Person(), tt.channel)); !strings.Contains(e.Reason, "start runs here") {
					t.Errorf("%s: %q", a.ID, e.Reason)
				}
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.book.spoil(time.Hour, nil)
		wantRefused(t, w.MayStart(t.Context(), bob.Person(), "CPUBLIC"))
	})
}

func TestMayStop(t *testing.T) {
	w := newWorld(t, approvers(t, "UCAROL"), quorum(2))
	run := &ledger.Run{ID: "run", Started: &ledger.RunStarted{
		Place: ledger.Place{Team: team, Channel: "CPUBLIC"}, Requesters: []ledger.Person{alice.Person()},
	}}
	for _, a := range []ledger.Actor{alice, carol, token} {
		if err := w.MayStop(t.Context(), a, run); err != nil {
			t.Errorf("%s: %v", a.ID, err)
		}
	}
	for _, a := range []ledger.Actor{bob, guest, foreign, ledger.System} {
		if e := wantRefused(t, w.MayStop(t.Context(), a, run)); !strings.Contains(e.Reason, "stop this run") {
			t.Errorf("%s: %q", a.ID, e.Reason)
		}
	}
}

func TestInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1 hour", 2 * time.Minute: "2 minutes", 90 * time.Second: "90 seconds", time.Second: "1 second",
		1500 * time.Millisecond: "1.5s", 15 * time.Minute: "15 minutes",
	} {
		if got := inWords(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
