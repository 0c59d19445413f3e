package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"approvalbot/internal/language"
)

// A Messenger writes to people in their chat, and knows who they are. Its errors
// are *[Error].
type Messenger interface {
	// Post writes the message, once. If it can't be known whether it was written,
	// the error's code is OUTCOME_UNKNOWN, and it is not written again.
	Post(ctx context.Context, m Message) (Posted, error)
	// Find lists the people that a name or an id may mean, the likeliest first.
	Find(ctx context.Context, query string) (people []Contact, more bool, err error)
}

// A Message is what post_message writes, and where.
type Message struct {
	To      string // #channel, a channel's id, or a person's id
	Name    string // of whom or what an id stands for; has to be right
	Thread  string // the message that it replies to; empty: none
	Text    string
	Mention []string // the people whose <@…> in the text notifies them
	Caller  Caller
}

// Posted is where a message stands.
type Posted struct {
	Channel string // its id
	TS      string // the message's
	Hidden  int    // secrets in the text that were replaced by their length
}

// A Contact is a person, or what else has an account.
type Contact struct {
	ID     string
	Name   string // as people see it
	Handle string
	Kind   string // in words: "full member", "guest", "bot"
}

// A Caller is who a call is made for. The agent says it in the context of the
// call. It is no part of what was approved: it is for messages that have to say on
// whose behalf they come, and for tools that look at more than the call names.
type Caller struct {
	Run        string
	Call       string
	Requesters []string // ids of the chat, or "token:NAME"

	// Withheld tells of a file, by its path in the workspace, that the operator's rules
	// keep from this call. A rule sees one path, so a tool that goes through a directory
	// has to ask for each file whose content it would give. It is nil where no rule could.
	Withheld func(path string) bool
}

func (c Caller) withheld(path string) bool { return c.Withheld != nil && c.Withheld(path) }

type callerKey struct{}

// WithCaller is ctx for a call that is made for somebody.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf says who a call is made for; nobody, if that isn't known.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// maxMessage is the most characters of a message; longer ones nobody reads.
const maxMessage = 3000

// The forms in which Slack names things.
var (
	personID   = regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`)
	channelID  = regexp.MustCompile(`^[CG][A-Z0-9]{1,30}$`)
	channelTag = regexp.MustCompile(`^#[^\s#@,<>&|]{1,80}$`)
	crowd      = regexp.MustCompile(`<!|@(?i:channel|here|everyone|group)\b`)
	mentioned  = regexp.MustCompile(`<@([UW][A-Z0-9]{1,30})>`)
)

// post_message writes to people, which can't be taken back: it asks always, and
// says exactly what will stand where. An id says nothing to a person who approves,
// so a call with one has to name whom it means, too, and the two are compared
// before anything is written.
type postMessage struct {
	m    Messenger
	lang language.Language
}

type postMessageArgs struct {
	To     string `json:"to"`
	Name   string `json:"name"`
	Thread string `json:"thread"`
	Text   string `json:"text"`
}

func (t *postMessage) Spec() Spec {
	return Spec{
		Name: "post_message",
		Description: "Post a message in Slack, in a channel or to one person, as the bot, saying on whose behalf. " +
			"People approve each message first. The text is plain: no Markdown. <@U…> mentions a person; nothing else notifies anybody, not @channel and no group. " +
			"Don't use it to answer the conversation that you are in: your answer is posted there by itself.",
		InputSchema: object([]string{"to", "text"}, map[string]*jsonschema.Schema{
			"to":     {Type: "string", Description: "#name of a channel, or the id of a channel (C…) or of a person (U…, from lookup_user).", MinLength: ptr(2), MaxLength: ptr(81)},
			"name":   {Type: "string", Description: "With an id: the name of that person or channel, as lookup_user or Slack shows it. It has to be right.", MinLength: ptr(1), MaxLength: ptr(100)},
			"thread": {Type: "string", Description: "To reply to a message of the channel: its timestamp.", Pattern: `^[0-9]{10}\.[0-9]{6}$`},
			"text":   {Type: "string", Description: "The message.", MinLength: ptr(1), MaxLength: ptr(maxMessage)},
		}),
		Annotations: Annotations{Title: "Post a message", DestructiveHint: ptr(false), OpenWorldHint: ptr(true)},
	}
}

func (t *postMessage) parse(args json.RawMessage) (a postMessageArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	id := personID.MatchString(a.To) || channelID.MatchString(a.To)
	switch {
	case !id && !channelTag.MatchString(a.To):
		return a, errorf(CodeInvalidArguments, "to has to be #name, the id of a channel (C…) or the id of a person (U…); lookup_user finds ids.")
	case id && strings.TrimSpace(a.Name) == "":
		return a, errorf(CodeInvalidArguments, "%s alone says nothing to whoever approves: give its name, too.", a.To)
	case !id && a.Name != "":
		return a, errorf(CodeInvalidArguments, "name belongs to an id; %s needs none.", a.To)
	case hasControl(a.Name):
		return a, errorf(CodeInvalidArguments, "name has a control character in it.")
	case a.Thread != "" && personID.MatchString(a.To):
		return a, errorf(CodeInvalidArguments, "thread goes with a channel, not with a person.")
	case strings.TrimSpace(a.Text) == "":
		return a, errorf(CodeInvalidArguments, "text is blank; there is nothing to post.")
	}
	return a, nil
}

// where is the place in words.
// where is for the model.
func (a postMessageArgs) where() string {
	switch {
	case personID.MatchString(a.To):
		return "to " + brief(a.Name) + " (" + a.To + ")"
	case a.Name != "":
		return "in #" + brief(strings.TrimPrefix(a.Name, "#")) + " (" + a.To + ")"
	}
	return "in " + a.To
}

func (a postMessageArgs) summary(l language.Language) string {
	switch {
	case personID.MatchString(a.To):
		return l.Tf("Post a message to %s (%s)", brief(a.Name), a.To)
	case a.Name != "":
		return l.Tf("Post a message in #%s (%s)", brief(strings.TrimPrefix(a.Name, "#")), a.To)
	}
	return l.Tf("Post a message in %s", a.To)
}

// mentions are the people whom the text mentions, each once.
func (a postMessageArgs) mentions() (ids []string) {
	for _, m := range mentioned.FindAllStringSubmatch(a.Text, -1) {
		if !slices.Contains(ids, m[1]) {
			ids = append(ids, m[1])
		}
	}
	return ids
}

func (t *postMessage) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Summary: a.summary(t.lang), Target: a.To, Kind: KindText, Body: a.Text}
	if a.Thread != "" {
		p.Notes = append(p.Notes, t.lang.Tf("As a reply to the message %s.", a.Thread))
	}
	if a.Name != "" {
		p.Notes = append(p.Notes, t.lang.Tf("Only if %s is called %q.", a.To, a.Name))
	}
	if ids := a.mentions(); len(ids) > 0 {
		p.Notes = append(p.Notes, t.lang.Tf("It mentions %s, who will be notified.", strings.Join(ids, ", ")))
	}
	if crowd.MatchString(a.Text) {
		p.Notes = append(p.Notes, t.lang.T("What reads like a mention of a channel or a group stays text and notifies nobody."))
	}
	p.Notes = append(p.Notes, t.lang.T("It can't be taken back. Under it stands on whose behalf it was posted."))
	return p, nil
}

// Facts says that it talks to Slack.
func (t *postMessage) Facts(json.RawMessage) Facts { return Facts{Host: "slack.com"} }

// Demands: people read it at once, whatever becomes of it later.
func (t *postMessage) Demands() Demands {
	return Demands{Ask: true, Why: "it can't be taken back", Risk: "high"}
}

func (t *postMessage) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	if ctx.Err() != nil {
		return Output{}, errorf(CodeAborted, "Stopped before the message was posted.")
	}
	posted, err := t.m.Post(ctx, Message{
		To: a.To, Name: a.Name, Thread: a.Thread, Text: a.Text, Mention: a.mentions(), Caller: CallerOf(ctx),
	})
	if err != nil {
		return Output{}, err
	}
	text := fmt.Sprintf("Posted %s (channel %s, message %s).", a.where(), posted.Channel, posted.TS)
	if posted.Hidden > 0 {
		text += fmt.Sprintf(" Of %s only the length was posted.", plural(posted.Hidden, "secret"))
	}
	return Output{Text: text}, nil
}

// lookup_user reads who is who. It asks nobody: it looks at the directory of the
// workspace in which the conversation already is, where everyone can see it, and
// sends nothing but the name to whom the whole conversation is known.
type lookupUser struct {
	m    Messenger
	lang language.Language
}

type lookupUserArgs struct {
	Query string `json:"query"`
}

func (t *lookupUser) Spec() Spec {
	return Spec{
		Name:        "lookup_user",
		Description: "Find people in Slack by name, by @handle or by id. Returns id, name, handle and kind of account. E-mail addresses can't be looked up.",
		InputSchema: object([]string{"query"}, map[string]*jsonschema.Schema{
			"query": {Type: "string", Description: "A name or a part of one, a handle, or an id (U…).", MinLength: ptr(1), MaxLength: ptr(100)},
		}),
		Annotations: reading("Look up a person"),
	}
}

func (t *lookupUser) parse(args json.RawMessage) (a lookupUserArgs, err error) {
	if err := decode(t.Spec(), args, &a); err != nil {
		return a, err
	}
	a.Query = strings.TrimPrefix(strings.TrimSpace(a.Query), "@")
	if m := mentioned.FindStringSubmatch("<@" + strings.Trim(a.Query, "<@>") + ">"); m != nil {
		a.Query = m[1]
	}
	switch {
	case a.Query == "":
		return a, errorf(CodeInvalidArguments, "query is blank; give a name or an id.")
	case hasControl(a.Query):
		return a, errorf(CodeInvalidArguments, "query has a control character in it.")
	case strings.Contains(a.Query, "@"):
		return a, errorf(CodeInvalidArguments, "E-mail addresses can't be looked up; give the person's name or handle.")
	}
	return a, nil
}

func (t *lookupUser) Describe(args json.RawMessage) (Preview, error) {
	a, err := t.parse(args)
	if err != nil {
		return Preview{}, err
	}
	return jsonPreview(t.lang.Tf("Look up %s in Slack", brief(a.Query)), a.Query, args)
}

func (t *lookupUser) Call(ctx context.Context, args json.RawMessage) (Output, error) {
	a, err := t.parse(args)
	if err != nil {
		return Output{}, err
	}
	people, more, err := t.m.Find(ctx, a.Query)
	if err != nil {
		return Output{}, err
	}
	if len(people) == 0 {
		return Output{}, errorf(CodeNotFound, "Nobody in Slack is called %s; try another spelling or a part of the name.", a.Query)
	}
	var text strings.Builder
	for _, p := range people {
		fmt.Fprintf(&text, "%s: %s (@%s), %s\n", p.ID, oneLine(p.Name), oneLine(p.Handle), p.Kind)
	}
	if more {
		text.WriteString("[There are more; give more of the name.]\n")
	}
	return Output{Text: strings.TrimSuffix(text.String(), "\n"), Truncated: more}, nil
}
