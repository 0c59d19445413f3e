package main

import (
	"context"
	"errors"
	"io"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/slackui"
	"approvalbot/internal/tools"
)

// maxAttachment is how large one file may be that people attach to a message.
const maxAttachment = 20 << 20

// attachments bring files from Slack into the workspace.
type attachments struct{ app *app }

func (a attachments) Save(ctx context.Context, workspace string, message ledger.Event, f ledger.File) (saved ledger.FileSaved) {
	m, ok := message.Body.(*ledger.MessageReceived)
	if !ok || m.Origin.TS == "" {
		saved.Error = "It did not come with a message in Slack."
		return saved
	}
	name := f.Name
	if name == "" {
		name = f.ID
	}
	in := a.app.toolsIn(workspace)
	if in == nil {
		saved.Error = "The workspace is not open."
		return saved
	}
	up, err := in.Upload(ctx, m.Origin.TS, name, func(w io.Writer) error {
		return a.app.slack.Download(ctx, f.ID, maxAttachment, w)
	})
	if err != nil {
		saved.Error = whyNotSaved(err)
		return saved
	}
	saved.Path, saved.Size, saved.SHA256 = up.Path, up.Size, up.SHA256
	return saved
}

// whyNotSaved is the reason in a sentence for people and the model, which names nothing of this machine.
func whyNotSaved(err error) string {
	if e, ok := errors.AsType[*slackui.DownloadError](err); ok {
		return e.Message
	}
	if e, ok := errors.AsType[*tools.Error](err); ok {
		return e.Message
	}
	return "It could not be written to the workspace."
}

// toolNames tells what the tools of the moment are called.
func toolNames(source agent.ToolSource) func() []string {
	return func() (names []string) {
		for _, spec := range source.Set().Specs() {
			names = append(names, spec.Name)
		}
		return names
	}
}
