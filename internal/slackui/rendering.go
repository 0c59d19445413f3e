package slackui

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/slack-go/slack"

	"approvalbot/internal/language"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
)

// A rendering is what one message of ours says: all of it is computed from the
// journal, so that the same events give the same bytes, now and after a restart.
type rendering struct {
	text   string        // the fallback: notifications and screen readers; escaped mrkdwn
	blocks []slack.Block // what people see
	thing  ledger.Thing  // whose message it is
	run    string        // the run that it belongs to; empty while the message waits its turn
	file   *document     // what is uploaded, of a thing that is a file
}

// hash is the SHA-256, in hex, of what Slack is asked to show.
func (r rendering) hash() string {
	content := ""
	if r.file != nil {
		content = string(r.file.content)
	}
	raw, err := json.Marshal(struct {
		Text   string        `json:"text"`
		Blocks []slack.Block `json:"blocks"`
		File   string        `json:"file,omitempty"`
	}{r.text, r.blocks, content})
	if err != nil {
		// Blocks are built here from strings and numbers; they always encode.
		panic("slackui: encode a rendering: " + err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// rendererVersion is the version of everything that decides what a message in its last state says. It is recorded with what
// Slack confirmed, so that a later version doesn't take the work of this one for tampering. A test notices when it has to
// be raised.
const rendererVersion = 1

// metadataType is the event_type of the metadata on every message of ours.
const metadataType = "approvalbot_message"

// metadata names the message, so that one whose post was never answered can be
// found again. Everyone in the workspace can read it: ids only.
func (r rendering) metadata() slack.SlackMetadata {
	payload := map[string]any{"kind": r.thing.Kind, "id": r.thing.ID}
	if r.run != "" {
		payload["run"] = r.run
	}
	return slack.SlackMetadata{EventType: metadataType, EventPayload: payload}
}

// A renderer turns readings of the journal into messages.
type renderer struct {
	redactor *redact.Redactor
	lang     language.Language
	team     string // our workspace
	botUser  string // ourselves, to be left out of mentions
	spot     *spot  // where the card that is rendered stands; nil: nothing is known of other places
	terse    int    // how much of a reason that somebody gave fits on what is rendered, in characters; 0: what usually does
	unnamed  string // of a mockup: who may approve where nobody is named; a request always names somebody
}
