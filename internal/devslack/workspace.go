package devslack

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"
)

// Kind says what a user or a channel is.
type Kind string

// Kinds of users and of channels.
const (
	KindMember      Kind = "member"
	KindGuest       Kind = "guest"
	KindExternal    Kind = "external" // somebody from another organization
	KindBot         Kind = "bot"
	KindDeactivated Kind = "deactivated"

	KindChannel Kind = "channel" // public
	KindPrivate Kind = "private"
	KindIM      Kind = "im"
)

// Team is the workspace itself.
type Team struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
}

// User is somebody who can be seen in the workspace.
type User struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	RealName string `json:"real_name"`
	Kind     Kind   `json:"kind"`
	TeamID   string `json:"team_id"`
	// BotID and AppID are set for bots only: messages carry both.
	BotID string `json:"bot_id,omitempty"`
	AppID string `json:"app_id,omitempty"`
	Admin bool   `json:"is_admin,omitempty"`
	// Workflow marks the bot of a workflow: its messages name no user.
	Workflow bool `json:"is_workflow_bot,omitempty"`
}

// Channel is any conversation. An IM has the bot and one user as its members.
type Channel struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind"`
	Members []string `json:"members"`
	User    string   `json:"user,omitempty"` // the person of an IM
	Creator string   `json:"creator,omitempty"`
	Created int64    `json:"created"`
	Topic   string   `json:"topic,omitempty"`
}

func (c *Channel) has(user string) bool { return slices.Contains(c.Members, user) }

// Group is a user group, mentioned as <!subteam^ID>.
type Group struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Handle string   `json:"handle"`
	Users  []string `json:"users"`
}

// Identity is the installed app as the workspace knows it. The tokens are made
// up; they open nothing but this local Slack.
type Identity struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	BotID     string `json:"bot_id"`
	BotUserID string `json:"bot_user_id"`
	BotToken  string `json:"bot_token"`
	AppToken  string `json:"app_token"`
}

// Installed is the app in the workspace: who it is, and what of the page its
// manifest switches on.
type Installed struct {
	Identity
	HomeTab       bool             `json:"home_tab"`
	MessagesTab   bool             `json:"messages_tab"`
	AgentView     bool             `json:"agent_view"`
	AssistantView bool             `json:"assistant_view"`
	Commands      []string         `json:"commands"`
	Usage         map[string]Usage `json:"usage,omitempty"`
	Shortcuts     []Shortcut       `json:"shortcuts"`
}

// Workspace is what GET /_dev/workspace answers.
type Workspace struct {
	Team       Team      `json:"team"`
	Users      []User    `json:"users"`
	Channels   []Channel `json:"channels"`
	Usergroups []Group   `json:"usergroups"`
	App        Installed `json:"app"`
}

// seed is everything about the workspace that is made once and then kept.
type seed struct {
	Team   Team     `json:"team"`
	Users  []*User  `json:"users"`
	Groups []*Group `json:"groups"`
	App    Identity `json:"app"`
	// Secret is the deprecated verification token that payloads carry.
	Secret string `json:"secret"`
}

// newSeed makes the fixed cast: whoever an approval bot has to tell apart is
// there once.
func newSeed() *seed {
	team := Team{ID: slackID("T"), Name: "Local Slack", Domain: "local"}
	app := Identity{
		ID: slackID("A"), Name: "approvalbot", BotID: slackID("B"), BotUserID: slackID("U"),
		BotToken: "xoxb-local-" + hexID(16), AppToken: "xapp-local-" + hexID(16),
	}
	person := func(name, real string, kind Kind) *User {
		return &User{ID: slackID("U"), Name: name, RealName: real, Kind: kind, TeamID: team.ID}
	}
	alice, bob, carol := person("alice", "Alice Ames", KindMember), person("bob", "Bob Brandt", KindMember), person("carol", "Carol Cruz", KindMember)
	alice.Admin = true
	external := person("erin", "Erin Else (Other Org)", KindExternal)
	external.TeamID = slackID("T")
	otherBot := person("deploybot", "deploybot", KindBot)
	otherBot.BotID, otherBot.AppID = slackID("B"), slackID("A")
	workflow := person("weekly-report", "Weekly report", KindBot)
	workflow.BotID, workflow.AppID, workflow.Workflow = slackID("B"), slackID("A"), true
	bot := &User{ID: app.BotUserID, Name: app.Name, RealName: app.Name, Kind: KindBot, TeamID: team.ID, BotID: app.BotID, AppID: app.ID}
	return &seed{
		Team: team,
		Users: []*User{alice, bob, carol, person("gus", "Gus Guest", KindGuest), external,
			person("dora", "Dora Departed", KindDeactivated), otherBot, workflow, bot},
		Groups: []*Group{{ID: slackID("S"), Name: "On call", Handle: "oncall", Users: []string{bob.ID, carol.ID}}},
		App:    app,
		Secret: hexID(12),
	}
}

// firstChannels are the conversations of a new workspace: one that everybody
// is in, a private one, a public one that the bot is not in, and the bot's IMs.
func (w *seed) firstChannels() []*Channel {
	now := time.Now().Unix()
	alice := w.Users[0].ID
	channel := func(prefix, name string, kind Kind, members ...string) *Channel {
		return &Channel{ID: slackID(prefix), Name: name, Kind: kind, Members: members, Creator: alice, Created: now}
	}
	var all, staff []string
	for _, u := range w.Users {
		if u.Kind != KindDeactivated {
			all = append(all, u.ID)
		}
		if u.Kind == KindMember {
			staff = append(staff, u.ID)
		}
	}
	channels := []*Channel{
		channel("C", "general", KindChannel, all...),
		channel("C", "ops-private", KindPrivate, alice, w.Users[1].ID, w.App.BotUserID),
		channel("C", "random", KindChannel, staff...),
	}
	for _, u := range w.Users {
		if u.Kind != KindDeactivated && u.Kind != KindBot {
			channels = append(channels, w.newIM(u))
		}
	}
	return channels
}

func (w *seed) newIM(u *User) *Channel {
	return &Channel{ID: slackID("D"), Name: u.Name, Kind: KindIM, User: u.ID,
		Members: []string{w.App.BotUserID, u.ID}, Created: time.Now().Unix()}
}

func (w *seed) user(id string) *User {
	for _, u := range w.Users {
		if u.ID == id {
			return u
		}
	}
	return nil
}

func (w *seed) group(id string) *Group {
	for _, g := range w.Groups {
		if g.ID == id {
			return g
		}
	}
	return nil
}

// slackID makes an id that looks like one of Slack's: an upper-case letter for
// the kind of thing, then letters and digits.
func slackID(prefix string) string {
	const alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789" // 32 signs: a byte modulo 32 is even
	raw := random(9)
	for i, b := range raw {
		raw[i] = alphabet[b%32]
	}
	return prefix + "0" + string(raw)
}

func hexID(bytes int) string { return hex.EncodeToString(random(bytes)) }

func uuid() string {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: it ends the process instead
	return b
}
