package devslack

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Attachment is a file that a person sends with a message; in JSON its content
// is base64.
type Attachment struct {
	Name     string `json:"name"`
	Content  []byte `json:"content"`
	Mimetype string `json:"mimetype,omitempty"`
}

const maxAttached = 10

// attach keeps the files of a message. s.mu is held.
func (s *Server) attach(ch *Channel, u *User, list []Attachment) ([]*File, error) {
	if len(list) > maxAttached {
		return nil, refuse("too_many_files", "Slack's client sends no more than 10 files with a message")
	}
	var files []*File
	for _, a := range list {
		if a.Name == "" || len(a.Content) == 0 {
			return nil, refuse("invalid_file", "a file has a name and a content that is not empty")
		}
		f := newFile(a.Name, u.ID, len(a.Content))
		if a.Mimetype != "" {
			f.Mimetype = a.Mimetype
		}
		f.Channels, f.IsPublic, f.uploaded = []string{ch.ID}, ch.Kind == KindChannel, true
		s.locate(f, s.origin)
		if s.store.dir == "" {
			f.content = a.Content
		} else if err := s.store.writeFile(f.ID, a.Content); err != nil {
			return nil, err
		}
		if err := s.commit(record{File: f}); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// newFile describes a file that somebody uploads.
func newFile(name, user string, size int) *File {
	now := time.Now().Unix()
	f := &File{ID: slackID("F"), Created: now, Timestamp: now, Name: name, Title: name, User: user, Size: size, Mode: "hosted", Channels: []string{}}
	f.Mimetype, f.Filetype, f.PrettyType = fileType(name)
	return f
}

// locate says where a file can be had, by the address that the app knows.
func (s *Server) locate(f *File, origin string) {
	f.URLPrivate = origin + "/files-pri/" + s.ws.Team.ID + "-" + f.ID
	f.URLPrivateDownload = f.URLPrivate + "/download"
	f.Permalink = origin + "/files/" + f.ID
}

// fileTypes are what Slack calls usual files, by their extension.
var fileTypes = map[string][3]string{
	".csv":  {"text/csv", "csv", "CSV"},
	".gif":  {"image/gif", "gif", "GIF"},
	".go":   {"text/plain", "go", "Go"},
	".html": {"text/html", "html", "HTML"},
	".jpeg": {"image/jpeg", "jpg", "JPEG"},
	".jpg":  {"image/jpeg", "jpg", "JPEG"},
	".json": {"application/json", "json", "JSON"},
	".md":   {"text/markdown", "markdown", "Markdown (raw)"},
	".pdf":  {"application/pdf", "pdf", "PDF"},
	".png":  {"image/png", "png", "PNG"},
	".webp": {"image/webp", "webp", "WebP"},
	".yaml": {"text/plain", "yaml", "YAML"},
	".yml":  {"text/plain", "yaml", "YAML"},
	".zip":  {"application/zip", "zip", "Zip"},
}

func fileType(name string) (mimetype, filetype, pretty string) {
	if t, ok := fileTypes[strings.ToLower(path.Ext(name))]; ok {
		return t[0], t[1], t[2]
	}
	return "text/plain", "text", "Plain Text"
}

// shownAs is the content type under which a browser gets a file: pictures as
// such, everything else as text. A file must not become a page of this host.
func (f *File) shownAs() string {
	if slices.Contains([]string{"image/gif", "image/jpeg", "image/png", "image/webp"}, f.Mimetype) {
		return f.Mimetype
	}
	return "text/plain; charset=utf-8"
}

// signIn is where Slack sends whoever asks for a file without the right to it:
// to a page that answers with 200 and HTML, which a careless client takes for
// the file.
func signIn(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Write([]byte("<!doctype html><title>Sign in</title><p>Sign in to Local Slack. (An app gets a file with its bot token and the scope files:read.)\n"))
}
