package slackui

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// An answer that is too long for a few messages is attached to its thread as a file, whole. The file is a thing of the
// outbox as messages are, only that it never changes: where they have a ts, it has its id, and it is found again by its
// name, which no other file has.

// kindFile is the kind of such a thing.
const kindFile = "file"

// A document is a file of ours.
type document struct {
	name    string
	content []byte
}

// answerFile is the whole answer of a run, as a file.
func (v *renderer) answerFile(run *ledger.Run) rendering {
	r := rendering{thing: ledger.Thing{Kind: kindFile, ID: run.ID}, run: run.ID}
	r.file = &document{name: documentName(run.ID), content: []byte(v.clean(run.Finished.Answer))}
	r.text = r.file.name
	return r
}

// documentTitle is what people see that file called.
const documentTitle = "answer.md"

// documentName is the name of the file with a run's answer. It has the whole name of the run in it: that is what it is
// found by.
func documentName(run string) string {
	return "answer-" + strings.TrimPrefix(run, "run_") + ".md"
}

// sendFile uploads a thing that is a file, and takes in the answer as sendPost does.
func (o *outbox) sendFile(ctx context.Context, t *thing, out rendering) (id string, err error) {
	sent, err := o.client.api.UploadFileContext(ctx, slack.UploadFileParameters{
		Reader: bytes.NewReader(out.file.content), FileSize: len(out.file.content), Filename: out.file.name, Title: documentTitle,
		Channel: t.place.Channel, ThreadTimestamp: t.place.Thread,
	})
	if err != nil {
		return "", err
	}
	return sent.ID, nil
}

// fileIn is the id of a thing's file, if a message brought it; empty if it didn't.
func (o *outbox) fileIn(m slack.Message, t *thing) string {
	if m.User != o.client.BotUser && m.BotID != o.client.BotID {
		return ""
	}
	for _, f := range m.Files {
		if f.Name == documentName(t.ID) {
			return f.ID
		}
	}
	return ""
}

// uploaded takes in that a thing's file was found. It is there as a whole or not at all.
func (o *outbox) uploaded(t *thing, now time.Time) {
	if t.Kind != kindFile {
		return
	}
	out := o.book.render(t, o.renderer, now)
	t.confirmed, t.final = out.hash(), out.final
}
