package devslack

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// File is something that was uploaded, as Slack describes it in messages.
type File struct {
	ID                 string   `json:"id"`
	Created            int64    `json:"created"`
	Timestamp          int64    `json:"timestamp"`
	Name               string   `json:"name"`
	Title              string   `json:"title"`
	Mimetype           string   `json:"mimetype"`
	Filetype           string   `json:"filetype"`
	PrettyType         string   `json:"pretty_type"`
	User               string   `json:"user"`
	Size               int      `json:"size"`
	Mode               string   `json:"mode"`
	IsExternal         bool     `json:"is_external"`
	IsPublic           bool     `json:"is_public"`
	URLPrivate         string   `json:"url_private"`
	URLPrivateDownload string   `json:"url_private_download"`
	Permalink          string   `json:"permalink"`
	AltText            string   `json:"alt_txt,omitempty"`
	Channels           []string `json:"channels"`
	content            []byte   // only without a directory
	uploaded           bool
}

const (
	maxUpload = 32 << 20
	maxAlt    = 1000
)

func (s *Server) filesGetUploadURL(c *apiCall) (reply, error) {
	name := c.args.str("filename")
	length, err := strconv.Atoi(c.args.str("length"))
	switch {
	case name == "":
		return nil, &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] missing required field: filename"}}
	case err != nil || length <= 0:
		return nil, fail("missing_argument")
	case len([]rune(c.args.str("alt_txt"))) > maxAlt:
		return nil, fail("alt_txt_too_large")
	case length > maxUpload:
		return nil, fail("file_too_large")
	case c.args.str("snippet_type") != "" && length > 1<<20:
		return nil, fail("snippet_too_large")
	}
	f := newFile(name, s.ws.App.BotUserID, length)
	f.AltText = c.args.str("alt_txt")
	secret := hexID(16)
	s.uploads[secret] = f
	return reply{"upload_url": c.origin + "/_upload/" + secret, "file_id": f.ID}, nil
}

// serveUpload takes a file's content. The secret in the URL is the permission.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	content, err := uploadedContent(r)
	if err == nil {
		err = s.upload(r.PathValue("secret"), content)
	}
	s.calls.add(Call{Kind: "api", Name: "upload", Request: encode(map[string]int{"bytes": len(content)}), Status: uploadStatus(err)})
	if err != nil {
		http.Error(w, err.Error(), uploadStatus(err))
		return
	}
	w.Write([]byte("OK - " + strconv.Itoa(len(content)))) // a client that has gone away is not our trouble
}

func uploadStatus(err error) int {
	if err != nil {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// uploadedContent is the raw body, or the one file of a form.
func uploadedContent(r *http.Request) ([]byte, error) {
	in := io.Reader(r.Body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		form, err := r.MultipartReader()
		if err != nil {
			return nil, err
		}
		part, err := form.NextPart()
		if err != nil {
			return nil, err
		}
		in = part
	}
	content, err := io.ReadAll(io.LimitReader(in, maxUpload+1))
	if err == nil && len(content) > maxUpload {
		err = fail("file_too_large")
	}
	return content, err
}

func (s *Server) upload(secret string, content []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.uploads[secret]
	if f == nil {
		return fail("no_such_upload")
	}
	if len(content) != f.Size {
		return fail("length_mismatch")
	}
	if s.store.dir == "" {
		f.content = content
	} else if err := s.store.writeFile(f.ID, content); err != nil {
		return err
	}
	f.uploaded = true
	return nil
}

// filesCompleteUpload turns uploads into files and shares them in a channel.
func (s *Server) filesCompleteUpload(c *apiCall) (reply, error) {
	var wanted []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if json.Unmarshal(c.args.raw("files"), &wanted) != nil || len(wanted) == 0 {
		return nil, fail("invalid_arguments")
	}
	var t *timeline
	if c.args.str("channel_id") != "" {
		var err error
		if t, err = s.shareTarget(c); err != nil {
			return nil, err
		}
	}
	var files []*File
	secrets := map[string]*File{}
	for _, want := range wanted {
		secret, f := s.uploadOf(want.ID)
		if f == nil || !f.uploaded {
			return nil, fail("file_not_found")
		}
		if want.Title != "" {
			f.Title = want.Title
		}
		secrets[secret] = f
		files = append(files, f)
	}
	for secret, f := range secrets {
		if t != nil {
			f.Channels = []string{t.channel.ID}
			f.IsPublic = t.channel.Kind == KindChannel
		}
		s.locate(f, c.origin)
		if err := s.commit(record{File: f}); err != nil {
			return nil, err
		}
		delete(s.uploads, secret)
	}
	if t != nil {
		return reply{"files": files}, s.share(c, t, files)
	}
	return reply{"files": files}, nil
}

func (s *Server) shareTarget(c *apiCall) (*timeline, error) {
	c.args["channel"] = c.args.str("channel_id")
	t, err := s.destination(c)
	if err != nil {
		return nil, err
	}
	return t, t.thread(c.args.str("thread_ts"))
}

func (s *Server) uploadOf(id string) (string, *File) {
	for secret, f := range s.uploads {
		if f.ID == id {
			return secret, f
		}
	}
	return "", nil
}

// share posts the message that shows files in a channel.
func (s *Server) share(c *apiCall, t *timeline, files []*File) error {
	m := s.botMessage(t, c.args.str("thread_ts"), content{text: escapeText(c.args.str("initial_comment"), true)})
	m.Subtype, m.Files = "file_share", files
	return s.post(t, m)
}

func (s *Server) filesInfo(c *apiCall) (reply, error) {
	f := s.files[c.args.str("file")]
	if f == nil {
		return nil, fail("file_not_found")
	}
	return reply{"file": f, "comments": []any{}}, nil
}

// serveFile gives a file to who has the bot's token, and to the page, which
// has passed the guard.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	_, id, _ := strings.Cut(r.PathValue("file"), "-")
	s.mu.Lock()
	f := s.files[id]
	forApp := r.Header.Get("Authorization") == "Bearer "+s.ws.App.BotToken && s.app.needs("files:read") == nil
	allowed := forApp || s.samePage(r)
	s.mu.Unlock()
	switch {
	case !allowed:
		http.Redirect(w, r, "/signin?"+url.Values{"redir": {r.URL.Path}}.Encode(), http.StatusFound)
		return
	case f == nil:
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	contentType := f.shownAs()
	if forApp {
		contentType = f.Mimetype
	}
	data := f.content
	if s.store.dir != "" {
		var err error
		if data, err = s.store.readFile(f.ID); err != nil {
			http.Error(w, "can't read the file", http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Security-Policy", "sandbox")
	w.Write(data) // a client that has gone away is not our trouble
}
