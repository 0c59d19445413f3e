package slackui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// Files that come with a message are named in its event, and only their ids are believed. What a file is, and where it can
// be had, Slack is asked when the run starts that may use it (agent.Attachments).

// maxAttached bounds how many files of a message are recorded.
const maxAttached = 50

// attached are the files of a message, as it is recorded.
func attached(files []slack.File) (all []ledger.File) {
	for _, f := range files {
		if f.ID == "" || len(all) == maxAttached {
			continue
		}
		all = append(all, ledger.File{ID: f.ID, Name: f.Name, Type: f.Mimetype, Size: int64(f.Size)})
	}
	return all
}

// A loss is a file of a message that could not be taken, and why.
type loss struct {
	message   int64
	file, why string
}

// tellLost tells whoever's message begins a run which files it has to do without. The model reads the same; it may not say it.
func (s *signs) tellLost(ctx context.Context, session string, message int64) {
	lost := s.lost[session]
	delete(s.lost, session)
	e, ok, err := s.ui.journal.Event(ctx, message)
	m, is := e.Body.(*ledger.MessageReceived)
	if len(lost) == 0 || err != nil || !ok || !is || !userID.MatchString(e.Actor.ID) {
		return
	}
	lines := []string{s.ui.renderer.t("Not everything that was attached could be taken:")}
	for _, l := range lost {
		lines = append(lines, s.ui.renderer.lostLine(s.named(ctx, l), l.why))
	}
	place := ledger.Place{Channel: m.Place.Channel, Thread: m.Place.Thread}
	if m.Place.Thread == m.Origin.TS {
		place.Thread = "" // where it was written, as every other sentence to its author
	}
	s.ui.tell(ctx, place, e.Actor.ID, strings.Join(lines, "\n"))
}

// named is what a file was called.
func (s *signs) named(ctx context.Context, l loss) string {
	e, ok, err := s.ui.journal.Event(ctx, l.message)
	if m, is := e.Body.(*ledger.MessageReceived); is && ok && err == nil {
		for _, f := range m.Files {
			if f.ID == l.file && f.Name != "" {
				return f.Name
			}
		}
	}
	return l.file
}

// lostLine is one file that could not be taken, in mrkdwn.
func (v *renderer) lostLine(name, why string) string {
	return "• " + escape(v.tf("%s: %s", v.line(name, maxNameChars), v.line(v.recorded(why), maxReasonChars)))
}

// downloadLimit bounds the download of one file.
const downloadLimit = 2 * time.Minute

// A DownloadError says why a file of somebody's message could not be had, in a sentence for people and the model.
type DownloadError struct{ Message string }

func (e *DownloadError) Error() string { return e.Message }

func notHad(format string, args ...any) error {
	return &DownloadError{Message: fmt.Sprintf(format, args...)}
}

// errTooMuch ends a download that brings more than was said.
var errTooMuch = errors.New("more than was said")

// Download writes the content of a file to w: at most so many bytes, and all of it or an error, which is a
// [*DownloadError] or w's own.
func (u *UI) Download(ctx context.Context, id string, most int64, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, downloadLimit)
	defer cancel()
	f, _, _, err := u.client.api.GetFileInfoContext(ctx, id, 0, 0)
	switch code := errorCode(err); {
	case code == "missing_scope":
		return notHad("The app may not read files: it lacks the scope files:read.")
	case code == "file_not_found" || code == "file_deleted":
		return notHad("Slack has no such file any more.")
	case err != nil:
		return notHad("Slack didn't say where the file is (%s).", said(err))
	case f.IsExternal || f.Mode == "external":
		return notHad("The file is kept by another service, not by Slack.")
	case int64(f.Size) > most:
		return notHad("The file has %d bytes; %d is the most that is taken.", f.Size, most)
	}
	address := f.URLPrivateDownload
	if address == "" {
		address = f.URLPrivate
	}
	sized := &counted{w: w, left: int64(f.Size)}
	err = u.client.api.GetFileContext(ctx, address, sized)
	switch {
	case sized.failed != nil:
		return sized.failed
	case err == nil && sized.left == 0:
		return nil
	case err == nil, errors.Is(err, errTooMuch):
		return notHad("What Slack sent is not the file: it has another size.")
	}
	u.log.Warn("a file could not be downloaded", "file", id, "error", err)
	return notHad("The file could not be downloaded.")
}

// counted passes on as many bytes as were announced, and no more.
type counted struct {
	w      io.Writer
	left   int64
	failed error // w's
}

func (c *counted) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, errTooMuch
	}
	n, err := c.w.Write(p)
	c.left -= int64(n)
	if err != nil {
		c.failed = err
	}
	return n, err
}
