package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"approvalbot/internal/ledger"
)

// What people attach to their messages is put into the workspace when the run starts that may use it, and the model reads
// of it with the message: where it is, or why it isn't there. It is people's own doing, so nobody is asked about it; what
// the model does with it is another matter.
//
// Each file is put there once: file_saved claims it, before run_started. A run doesn't fail for a file.

// Attachments fetches what was attached to messages.
type Attachments interface {
	// Save puts one file of a message into the workspace that the run works in, and says where it is, or why it isn't there. It never waits longer
	// than ctx.
	Save(ctx context.Context, workspace string, message ledger.Event, f ledger.File) ledger.FileSaved
}

const (
	// maxAttachments and maxAttachedBytes bound what one message may bring.
	maxAttachments   = 10
	maxAttachedBytes = 50 << 20

	// attachLimit bounds how long a run waits for its files.
	attachLimit = 3 * time.Minute
)

// attach saves the files of all messages that the run is about to be given. An error means that it could not be recorded.
func (a *Agent) attach(ctx context.Context, workspace string, msg ledger.Event) error {
	files, err := a.unsaved(ctx, msg)
	if err != nil || len(files) == 0 {
		return err
	}
	if _, taken, err := a.Ledger.Claimed(ctx, ledger.ClaimTaken(msg.Seq)); err != nil || taken {
		return err // it starts nothing any more
	}
	limited, cancel := context.WithTimeout(ctx, attachLimit)
	defer cancel()
	for _, m := range files {
		if err := a.saveAll(ctx, limited, workspace, m); err != nil {
			return err
		}
	}
	return nil
}

// attachments saves what a run is to work with; a run that can't begin gets nothing.
func (r *run) attachments(ctx context.Context, msg ledger.Event) error {
	if r.unfit != nil {
		return nil
	}
	return r.attach(ctx, r.profile.Workspace, msg)
}

// unsaved are the messages with files whose words the run will be the first to read. Of some, files may have been saved
// before a crash.
func (a *Agent) unsaved(ctx context.Context, msg ledger.Event) (all []ledger.Event, err error) {
	kinds := []string{"message_received", "run_started"}
	for e, err := range a.Ledger.Read(ctx, 0, ledger.Filter{Session: msg.Session, Kinds: kinds}) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case *ledger.MessageReceived:
			if len(b.Files) > 0 && (b.Disposition == ledger.Context || e.Seq == msg.Seq) {
				all = append(all, e)
			}
		case *ledger.RunStarted: // what was said before is told already
			all = slices.DeleteFunc(all, func(m ledger.Event) bool { return m.Seq != msg.Seq && m.Seq < e.Seq })
		}
	}
	return all, nil
}

// saveAll saves the files of one message, one after the other.
func (a *Agent) saveAll(ctx, limited context.Context, workspace string, m ledger.Event) error {
	body := m.Body.(*ledger.MessageReceived)
	total := int64(0)
	for i, f := range body.Files {
		saved := ledger.FileSaved{Message: m.Seq, File: f.ID}
		switch {
		case a.Attachments == nil:
			saved.Error = "Files can't be taken here."
		case i >= maxAttachments:
			saved.Error = fmt.Sprintf("A message may bring %d files at most.", maxAttachments)
		case total+f.Size > maxAttachedBytes:
			saved.Error = fmt.Sprintf("The files of a message may have %d bytes together.", maxAttachedBytes)
		case limited.Err() != nil:
			saved.Error = "It took too long."
		default:
			if _, before, err := a.Ledger.Claimed(ctx, ledger.ClaimFile(m.Seq, f.ID)); err != nil {
				return err
			} else if before {
				continue
			}
			saved = a.Attachments.Save(limited, workspace, m, f)
			saved.Message, saved.File = m.Seq, f.ID
			total += saved.Size
		}
		_, err := a.Ledger.Append(ctx, ledger.Event{Session: m.Session, Actor: ledger.System, Body: &saved})
		if _, before := errors.AsType[*ledger.ConflictError](err); err != nil && !before {
			return err
		}
	}
	return nil
}

// WithFiles is a message's text for the model, with what became of the files that came with it, by their ids.
func WithFiles(text string, files []ledger.File, saved map[string]*ledger.FileSaved) string {
	var lines []string
	if strings.TrimSpace(text) != "" {
		lines = append(lines, text)
	}
	for _, f := range files {
		name := firstOf(f.Name, f.ID)
		s := saved[f.ID]
		switch {
		case s == nil:
			lines = append(lines, fmt.Sprintf("[attached file %q: it was not taken over]", name))
		case s.Path == "":
			lines = append(lines, fmt.Sprintf("[attached file %q: not available. %s]", name, firstOf(s.Error, "It is not known why.")))
		default:
			lines = append(lines, fmt.Sprintf("[attached file %q: %s in the workspace, %d bytes]", name, s.Path, s.Size))
		}
	}
	return strings.Join(lines, "\n")
}
