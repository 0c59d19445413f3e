package slackui

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// A Post is a message that the agent writes to people, on somebody's behalf. It is
// no thing of the outbox: nothing of it can be computed from the journal again, and
// nothing of it changes later. It is sent at most once. What isn't answered is
// looked for by its metadata, and is never sent again.
type Post struct {
	To      string   // #name of a channel, a channel's id, or a person's id
	Name    string   // what is behind an id; compared before anything is sent
	Thread  string   // ts of the message that it replies to; empty: none
	Text    string   // plain; <@U…> of those in Mention notifies them
	Mention []string // ids
	For     []string // ids of those on whose behalf it is sent
	Run     string   // whose message it is
}

// Posted is where a [Post] stands.
type Posted struct {
	Channel, TS string
	Hidden      int // secrets of which only the length was posted
}

// A PostError says why a [Post] isn't there, in a sentence.
type PostError struct {
	Unknown bool // whether it is there can't be found out
	Missing bool // who or what it was for isn't there, or isn't who it was said to be
	Message string
}

func (e *PostError) Error() string { return e.Message }

func absentee(format string, args ...any) error {
	return &PostError{Missing: true, Message: fmt.Sprintf(format, args...)}
}

func unposted(format string, args ...any) error {
	return &PostError{Message: fmt.Sprintf(format, args...)}
}

const (
	// postLimit is how long a post may wait for its turn and for limits of Slack.
	postLimit = time.Minute

	// postTries is how often Slack may put us off.
	postTries = 4

	// postMentions bounds how many people one message notifies by name.
	postMentions = 10

	// maxLink is the longest address that is made a link.
	maxLink = 2000

	kindPost = "post"
)

// Post sends a message. Errors are *PostError, or the context's while nothing was
// sent.
func (u *UI) Post(ctx context.Context, p Post) (Posted, error) {
	limited, cancel := context.WithTimeout(ctx, postLimit)
	defer cancel()
	channel, err := u.recipient(limited, p)
	if err != nil {
		return Posted{}, err
	}
	if err := u.mentionable(limited, p.Mention); err != nil {
		return Posted{}, err
	}
	out, hidden := u.renderer.post(p, u.names(limited, p.For))
	if !fits(out.blocks) {
		return Posted{}, unposted("The message is too long for Slack; nothing was posted. Shorten it, or post it in parts.")
	}
	posted, err := u.deliver(limited, channel, p.Thread, out)
	posted.Hidden = hidden
	return posted, err
}

// recipient finds out where a post goes, and makes sure that it is what it was
// said to be.
func (u *UI) recipient(ctx context.Context, p Post) (string, error) {
	switch {
	case strings.HasPrefix(p.To, "#"):
		return u.channelNamed(ctx, strings.TrimPrefix(p.To, "#"))
	case userID.MatchString(p.To):
		return p.To, u.personCalled(ctx, p.To, p.Name)
	}
	c, err := u.client.directory.Channel(ctx, p.To)
	switch {
	case errorCode(err) == "channel_not_found":
		return "", absentee("There is no channel %s that the bot can see; nothing was posted.", p.To)
	case err != nil:
		return "", unposted("Slack didn't say what %s is (%s); nothing was posted.", p.To, said(err))
	case c.Kind != approvals.PublicChannel && c.Kind != approvals.PrivateChannel:
		return "", absentee("%s is a conversation between people, not a channel; nothing was posted. Name the person by their id instead.", p.To)
	case !strings.EqualFold(c.Name, strings.TrimPrefix(p.Name, "#")):
		return "", absentee("%s is called #%s, not #%s; nothing was posted.", p.To, c.Name, strings.TrimPrefix(p.Name, "#"))
	}
	return c.ID, nil
}

// channelNamed finds a channel by its name.
func (u *UI) channelNamed(ctx context.Context, name string) (string, error) {
	list, err := lookFor(ctx, u.client.directory, "channels", listLimit, func(ctx context.Context) ([]slack.Channel, error) {
		return u.client.conversations(ctx, "public_channel", "private_channel")
	})
	if err != nil {
		return "", unposted("Slack didn't list its channels (%s); nothing was posted. Name the channel by its id (C…) and name.", said(err))
	}
	i := slices.IndexFunc(list, func(c slack.Channel) bool { return strings.EqualFold(c.Name, name) })
	switch {
	case i < 0:
		return "", absentee("There is no channel #%s that the bot can see; nothing was posted. Is the name right, and was the bot invited?", name)
	case !list[i].IsMember:
		return "", unposted("The bot is not in #%s, so it can't post there. Somebody has to invite it: /invite @%s", name, u.client.BotName)
	}
	return list[i].ID, nil
}

// conversationsMost bounds how many are read to find one.
const conversationsMost = 20_000

// conversations lists those of some types that the bot can see.
func (c *Client) conversations(ctx context.Context, types ...string) (all []slack.Channel, err error) {
	cursor := ""
	for {
		page, next, err := c.api.GetConversationsContext(ctx, &slack.GetConversationsParameters{
			Types: types, ExcludeArchived: true, Limit: membersPage, Cursor: cursor,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" {
			return all, nil
		}
		if next == cursor || len(all) > conversationsMost {
			return nil, fmt.Errorf("there are more than %d", conversationsMost)
		}
		cursor = next
	}
}

// personCalled makes sure that somebody is who they were said to be, and can be
// written to.
func (u *UI) personCalled(ctx context.Context, id, name string) error {
	person, err := u.user(ctx, id)
	if err != nil {
		return err
	}
	if !called(person, name) {
		return absentee("%s is %s, not %s; nothing was posted. lookup_user finds people by name.", id, displayName(person), name)
	}
	switch u.client.directory.kind(ledger.Person{ID: id}, person) {
	case approvals.FullMember, approvals.Guest:
		return nil
	case approvals.Deactivated:
		return absentee("The account of %s (%s) is deactivated; nothing was posted.", name, id)
	case approvals.Bot:
		return absentee("%s (%s) is a bot; nothing was posted.", name, id)
	}
	return absentee("%s (%s) belongs to another organization; the bot writes only to people of this workspace. Nothing was posted.", name, id)
}

// user is an account of the workspace.
func (u *UI) user(ctx context.Context, id string) (*slack.User, error) {
	person, err := look(ctx, u.client.directory, "user "+id, func(ctx context.Context) (*slack.User, error) {
		return u.client.api.GetUserInfoContext(ctx, id)
	})
	switch {
	case errorCode(err) == "user_not_found", err == nil && person.ID != id:
		return nil, absentee("There is nobody in Slack with the id %s; nothing was posted. lookup_user finds ids.", id)
	case err != nil:
		return nil, unposted("Slack didn't say who %s is (%s); nothing was posted.", id, said(err))
	}
	return person, nil
}

// aliases are what a person is called.
func aliases(u *slack.User) []string {
	return []string{u.Profile.DisplayName, u.RealName, u.Profile.RealName, u.Name}
}

func called(u *slack.User, name string) bool {
	name = strings.TrimPrefix(strings.TrimSpace(name), "@")
	return name != "" && slices.ContainsFunc(aliases(u), func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), name) })
}

// mentionable makes sure that everyone who is mentioned is there: Slack refuses a
// message that mentions somebody it doesn't know.
func (u *UI) mentionable(ctx context.Context, ids []string) error {
	if len(ids) > postMentions {
		return unposted("The message mentions %d people, and %d is the most; nothing was posted.", len(ids), postMentions)
	}
	for _, id := range ids {
		if _, err := u.user(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// names are those of the people with these ids, as text: on whose behalf a message
// comes is said, and is no mention. Who isn't known is named by the id.
func (u *UI) names(ctx context.Context, ids []string) (all []string) {
	for i, id := range ids {
		if i == maxMentions {
			return append(all, u.renderer.t("others"))
		}
		name := id
		if userID.MatchString(id) {
			if person, err := u.user(ctx, id); err == nil {
				name = displayName(person)
			}
		}
		if token, ok := strings.CutPrefix(id, "token:"); ok {
			name = u.renderer.tf("%s (over HTTP)", token)
		}
		all = append(all, name)
	}
	return all
}

var (
	mentionIn = regexp.MustCompile(`<@([UW][A-Z0-9]{1,30})>`)
	lineEnds  = regexp.MustCompile(`[ \t\r]+(\n)`)
	addressIn = regexp.MustCompile(`https?://[^\s<>|"'\x60]+`)
)

// post renders a post: its words, which can mention nobody but whom they name, and
// whose they are.
func (v *renderer) post(p Post, names []string) (rendering, int) {
	clean, hits := v.redactor.Text(p.Text)
	section := &slack.RichTextSection{Type: slack.RTESection}
	// Without the blanks that end lines, which nobody would miss; and whole, because at the end of a piece a blank would look
	// like one of those.
	rest := prose(strings.TrimRight(lineEnds.ReplaceAllString(clean, "$1"), " \t\r\n"))
	for rest != "" {
		m := mentionIn.FindStringSubmatchIndex(rest)
		if m == nil {
			section.Elements = append(section.Elements, written(rest)...)
			break
		}
		section.Elements = append(section.Elements, written(rest[:m[0]])...)
		if id := rest[m[2]:m[3]]; slices.Contains(p.Mention, id) {
			section.Elements = append(section.Elements, slack.NewRichTextSectionUserElement(id, nil))
		} else {
			section.Elements = append(section.Elements, written(rest[m[0]:m[1]])...)
		}
		rest = rest[m[1]:]
	}
	by := v.t("Posted by an agent.")
	if len(names) > 0 {
		by = v.tf("Posted by an agent for %s.", v.line(strings.Join(names, v.t(", ")), maxReasonChars))
	}
	context := slack.NewContextBlock("", slack.NewTextBlockObject(slack.PlainTextType, by, false, false))
	return rendering{
		text: fallback(short(clean, maxFallback)), blocks: []slack.Block{richText(section), context},
		thing: ledger.Thing{Kind: kindPost, ID: uuid.NewString()}, run: p.Run,
	}, len(hits)
}

// written is visible text as it is, except that an address is a link to itself.
func written(s string) (out []element) {
	plainText := func(s string) {
		for _, piece := range pieces(s, maxTextChars) {
			out = append(out, text(piece))
		}
	}
	start := 0
	for _, m := range addressIn.FindAllStringIndex(s, -1) {
		address := strings.TrimRight(s[m[0]:m[1]], ".,;:!?)]}")
		if !linkable(address) {
			continue
		}
		plainText(s[start:m[0]])
		out = append(out, slack.NewRichTextSectionLinkElement(address, address, nil))
		start = m[0] + len(address)
	}
	plainText(s[start:])
	return out
}

// linkable tells whether an address is one that can be clicked and be read for what
// it is: a backslash is the mark of something that can't be seen.
func linkable(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && u.User == nil && len(address) <= maxLink && !strings.Contains(address, `\`)
}

// deliver sends a rendering once: again only after Slack said that it did not take
// it. While it is under way it isn't stopped, because then nobody would know.
func (u *UI) deliver(ctx context.Context, channel, thread string, out rendering) (Posted, error) {
	opts := options(out)
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	for try := 1; ; try++ {
		if err := u.outbox.turn(ctx, channel); err != nil {
			return Posted{}, unposted("Slack takes no more messages there at the moment, or the run was stopped; nothing was posted.")
		}
		where, ts, err := u.client.api.PostMessageContext(context.WithoutCancel(ctx), channel, opts...)
		if err == nil && ts == "" {
			err = errUnanswered
		}
		a := judge(err)
		switch {
		case a.verdict == confirmed:
			return Posted{Channel: where, TS: ts}, nil
		case a.verdict == unsure:
			return u.lookFor(ctx, channel, thread, out, err)
		case try < postTries && (a.verdict == limited || a.verdict == failed):
			u.outbox.hold(channel, max(a.after, retryAfter(try)))
			continue
		}
		u.log.Warn("Slack did not take a message of a tool", "verdict", a.verdict, "code", a.code, "run", out.run, "error", err)
		return Posted{}, refusal(a, u.client.BotName)
	}
}

// refusal is Slack's no in a sentence that says what to do.
func refusal(a answer, bot string) error {
	switch a.code {
	case "not_in_channel":
		return unposted("The bot is not in that channel, so nothing was posted. Somebody has to invite it: /invite @%s", bot)
	case "channel_not_found":
		return absentee("There is no such channel that the bot can see; nothing was posted.")
	case "is_archived":
		return unposted("The channel is archived; nothing was posted.")
	case "restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel":
		return unposted("The bot may not post in that channel; nothing was posted.")
	case "cannot_reply_to_message", "thread_locked", "restricted_action_thread_locked", "invalid_thread_ts":
		return absentee("That message can't be replied to; nothing was posted. Is thread right?")
	case "user_disabled":
		return absentee("That account is deactivated; nothing was posted.")
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return unposted("Slack takes no more messages at the moment; nothing was posted. Try again in a minute.")
	}
	return unposted("Slack didn't take the message (%s); nothing was posted.", a.code)
}

// lookFor looks whether a message whose post wasn't answered is there.
func (u *UI) lookFor(ctx context.Context, channel, thread string, out rendering, cause error) (Posted, error) {
	unknown := &PostError{Unknown: true, Message: "Slack didn't answer, so it isn't known whether the message was posted. It was not sent again; look in Slack before you do."}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookForLimit)
	defer cancel()
	u.log.Warn("the post of a message of a tool was not answered", "run", out.run, "error", cause)
	looks := 2 // it may be under way still, and arrive after the first look
	if gotAnswer(cause) {
		looks = 1
	}
	t := &thing{Thing: out.thing, run: out.run}
	for ; looks > 0; looks-- {
		if where, err := u.direct(ctx, channel); err == nil {
			t.place = ledger.Place{Channel: where, Thread: thread}
			ts, err := u.outbox.seen(ctx, t)
			if err == nil && ts != "" {
				return Posted{Channel: where, TS: ts}, nil
			}
		}
		if looks > 1 && sleep(ctx, lookAgain) != nil {
			break
		}
	}
	return Posted{}, unknown
}

// lookForLimit bounds the looking: people may wait for the run to stop.
const lookForLimit = 9 * time.Second

// direct is the conversation that a message to somebody stands in; a channel is one
// itself.
func (u *UI) direct(ctx context.Context, to string) (string, error) {
	if !userID.MatchString(to) {
		return to, nil
	}
	list, err := u.client.conversations(ctx, "im")
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list, func(c slack.Channel) bool { return c.User == to })
	if i < 0 {
		return "", errors.New("there is no conversation with them")
	}
	return list[i].ID, nil
}

// said is an error of Slack in a word, for a sentence.
func said(err error) string {
	if code := errorCode(err); code != "" {
		return code
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it took too long"
	}
	return "it can't be reached"
}

// turn waits until one more message may be posted in a channel, and counts it.
func (o *outbox) turn(ctx context.Context, channel string) error {
	for {
		o.mu.Lock()
		ch, now := o.channel(channel), time.Now()
		at := ch.at(now, 0)
		if !at.After(now) {
			ch.take(now)
		}
		o.mu.Unlock()
		if !at.After(now) {
			return ctx.Err()
		}
		if deadline, ok := ctx.Deadline(); ok && at.After(deadline) {
			return context.DeadlineExceeded
		}
		if sleep(ctx, at.Sub(now)) != nil {
			return ctx.Err()
		}
	}
}

// hold keeps everybody from posting in a channel for a while.
func (o *outbox) hold(channel string, d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.channel(channel).stop(time.Now(), d)
}

// seen looks for a thing's message among the latest of a channel, or in a thread.
func (o *outbox) seen(ctx context.Context, t *thing) (string, error) {
	o.mu.Lock()
	o.finds.take(time.Now())
	o.mu.Unlock()
	if t.place.Thread != "" {
		return o.lookUp(ctx, t)
	}
	messages, _, err := o.page(ctx, t, "")
	if err != nil {
		return "", err
	}
	for _, m := range messages {
		if o.is(m, t) {
			return m.Timestamp, nil
		}
	}
	return "", nil
}
