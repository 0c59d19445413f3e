package approvals

import (
	"context"
	"errors"
	"time"

	"approvalbot/internal/ledger"
)

// lookupLimit is how long finding out who somebody is may take: a click has to be answered within Slack's 3 seconds.
const lookupLimit = 2 * time.Second

// ErrNoSuch says that the workspace has no person, group or channel with that id. It is an answer, and a lasting one:
// such an id lets nobody in. Every other error of a directory means that it isn't known.
var ErrNoSuch = errors.New("there is none with this id")

// A Directory answers who somebody is. Implementations keep answers for a minute and give up when ctx ends. An error
// that isn't [ErrNoSuch] means that it isn't known, which is a no, too, but perhaps not the next time.
type Directory interface {
	Person(ctx context.Context, p ledger.Person) (Profile, error)
	Channel(ctx context.Context, channel string) (ChannelInfo, error)
	Member(ctx context.Context, channel, user string) (bool, error)
	Group(ctx context.Context, group string) ([]string, error) // user ids
}

// A GroupNamer is a directory that knows what user groups are called. A name decides nothing.
type GroupNamer interface {
	GroupName(ctx context.Context, group string) (string, error)
}

// A Profile is what a directory knows of a person.
type Profile struct {
	ID   ledger.Person // the one that was asked about, with their team; an answer about another is none
	Name string
	Kind PersonKind
}

// PersonKind is what somebody is in our workspace. Only members ever decide.
type PersonKind string

const (
	UnknownPerson PersonKind = ""
	FullMember    PersonKind = "member"
	Guest         PersonKind = "guest"
	External      PersonKind = "external" // of another organization
	Bot           PersonKind = "bot"
	Deactivated   PersonKind = "deactivated"
)

// ChannelInfo is what a directory knows of a conversation.
type ChannelInfo struct {
	ID       string
	Name     string
	Kind     ChannelKind
	Archived bool
	Shared   bool // with another organization
}

// ChannelKind is who can get into a conversation.
type ChannelKind string

const (
	UnknownChannel ChannelKind = ""
	PublicChannel  ChannelKind = "channel" // anyone in the workspace can join
	PrivateChannel ChannelKind = "private"
	DirectMessage  ChannelKind = "im"
	GroupMessage   ChannelKind = "mpim"
)
