package devslack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Message is a message as Slack returns it. What depends on other messages
// (the thread's counters) is not stored but filled in when it is shown.
type Message struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype,omitempty"`
	Hidden       bool            `json:"hidden,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	Username     string          `json:"username,omitempty"` // of a bot without a user
	AppID        string          `json:"app_id,omitempty"`
	BotProfile   *BotProfile     `json:"bot_profile,omitempty"`
	ClientMsgID  string          `json:"client_msg_id,omitempty"`
	Team         string          `json:"team,omitempty"`
	UserTeam     string          `json:"user_team,omitempty"`   // with SourceTeam: only of people from
	SourceTeam   string          `json:"source_team,omitempty"` // another organization
	Text         string          `json:"text"`
	TS           string          `json:"ts"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	Edited       *Edited         `json:"edited,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Files        []*File         `json:"files,omitempty"`
	Upload       *bool           `json:"upload,omitempty"` // beside the files of a message
	Reactions    []Reaction      `json:"reactions,omitempty"`
	// AssistantThread is set in the first message of an assistant's thread.
	AssistantThread *AssistantThread `json:"assistant_app_thread,omitempty"`

	ReplyCount      int      `json:"reply_count,omitempty"`
	ReplyUsersCount int      `json:"reply_users_count,omitempty"`
	LatestReply     string   `json:"latest_reply,omitempty"`
	ReplyUsers      []string `json:"reply_users,omitempty"`

	// EphemeralTo is set only in answers of the control plane: Slack never
	// returns ephemeral messages.
	EphemeralTo string `json:"ephemeral_to,omitempty"`
}

// Edited says who changed a message last, and when.
type Edited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// BotProfile goes with every message of a bot.
type BotProfile struct {
	ID      string            `json:"id"`
	AppID   string            `json:"app_id"`
	Name    string            `json:"name"`
	Icons   map[string]string `json:"icons"`
	Deleted bool              `json:"deleted"`
	Updated int64             `json:"updated"`
	TeamID  string            `json:"team_id"`
	// Workflow marks the bot of a workflow.
	Workflow bool `json:"is_workflow_bot,omitempty"`
}

// Reaction is one emoji on a message, with everybody who put it there.
type Reaction struct {
	Name  string   `json:"name"`
	Users []string `json:"users"`
	Count int      `json:"count"`
}

// clone copies what can be changed in place, so that a copy stays what it was.
func (m *Message) clone() *Message {
	out := *m
	out.Files = slices.Clone(m.Files)
	out.Reactions = slices.Clone(m.Reactions)
	for i, r := range out.Reactions {
		out.Reactions[i].Users = slices.Clone(r.Users)
	}
	return &out
}

func (m *Message) micros() int64 {
	n, _ := parseTS(m.TS)
	return n
}

func (m *Message) isReply() bool { return m.ThreadTS != "" && m.ThreadTS != m.TS }

// parseTS reads a message timestamp, which identifies a message within its
// channel: seconds, a dot, six digits.
func parseTS(ts string) (micros int64, ok bool) {
	seconds, fraction, found := strings.Cut(ts, ".")
	if !found || len(fraction) != 6 || len(seconds) > 11 {
		return 0, false
	}
	s, err1 := strconv.ParseUint(seconds, 10, 63)
	f, err2 := strconv.ParseUint(fraction, 10, 63)
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return int64(s)*1e6 + int64(f), true
}

func formatTS(micros int64) string {
	return fmt.Sprintf("%010d.%06d", micros/1e6, micros%1e6)
}

// stampNow is a timestamp for things that need not be unique.
func stampNow() string { return formatTS(time.Now().UnixMicro()) }

// timeline is the messages of one channel in the order of their timestamps.
// It is used only under Server.mu.
type timeline struct {
	channel *Channel
	last    int64 // the newest timestamp ever given, ephemerals and deleted messages included
	all     []*Message
	replies map[string][]*Message // by thread_ts, parent excluded
	// ephemerals live as long as the process, as they do in a Slack client.
	ephemerals []*Message
}

// nextTS is the current time, or one microsecond after the last timestamp.
func (t *timeline) nextTS() string {
	t.last = max(t.last+1, time.Now().UnixMicro())
	return formatTS(t.last)
}

func (t *timeline) search(ts string) (int, bool) {
	micros, ok := parseTS(ts)
	if !ok {
		return 0, false
	}
	return slices.BinarySearchFunc(t.all, micros, func(m *Message, at int64) int {
		return cmp.Compare(m.micros(), at)
	})
}

func (t *timeline) find(ts string) *Message {
	if i, ok := t.search(ts); ok {
		return t.all[i]
	}
	return nil
}

func (t *timeline) findEphemeral(ts string) *Message {
	for _, m := range t.ephemerals {
		if m.TS == ts {
			return m
		}
	}
	return nil
}

// put adds the message, or replaces the one with its timestamp.
func (t *timeline) put(m *Message) {
	t.last = max(t.last, m.micros())
	i, found := t.search(m.TS)
	if found {
		t.all[i] = m
	} else {
		t.all = slices.Insert(t.all, i, m)
	}
	if !m.isReply() {
		return
	}
	thread := t.replies[m.ThreadTS]
	j := slices.IndexFunc(thread, func(r *Message) bool { return r.TS == m.TS })
	if j >= 0 {
		thread[j] = m
		return
	}
	t.replies[m.ThreadTS] = append(thread, m)
}

func (t *timeline) remove(ts string) {
	i, found := t.search(ts)
	if !found {
		return
	}
	m := t.all[i]
	t.all = slices.Delete(t.all, i, i+1)
	if m.isReply() {
		t.replies[m.ThreadTS] = slices.DeleteFunc(t.replies[m.ThreadTS], func(r *Message) bool { return r.TS == ts })
	}
}

// shown is the message as it is returned: with the thread's counters on a
// parent, and with metadata only for who asked for it.
func (t *timeline) shown(m *Message, metadata bool) *Message {
	out := m.clone()
	if !metadata {
		out.Metadata = nil
	}
	thread := t.replies[m.TS]
	if len(thread) == 0 {
		return out
	}
	out.ThreadTS = m.TS
	out.ReplyCount = len(thread)
	out.LatestReply = thread[len(thread)-1].TS
	for _, r := range thread {
		if !slices.Contains(out.ReplyUsers, r.User) {
			out.ReplyUsersCount++
			if len(out.ReplyUsers) < 5 { // Slack names five people, the count has all
				out.ReplyUsers = append(out.ReplyUsers, r.User)
			}
		}
	}
	return out
}
