package devslack

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"
)

// responseURL lets the app answer one interaction without a token.
type responseURL struct {
	channel   string
	user      string
	ts        string // the message that was clicked; empty for a command
	threadTS  string
	ephemeral bool
	uses      int
	expires   time.Time
}

const (
	responseLife = 30 * time.Minute
	responseUses = 5
)

// newResponseURL makes the URL; where is "actions" or "commands".
func (s *Server) newResponseURL(where string, use *responseURL) string {
	now := time.Now()
	maps.DeleteFunc(s.responses, func(_ string, r *responseURL) bool { return now.Sub(r.expires) > time.Hour })
	use.expires = now.Add(responseLife)
	secret := hexID(16)
	s.responses[secret] = use
	return s.origin + "/" + where + "/" + s.ws.Team.ID + "/" + secret
}

// serveResponse is a POST to a response_url.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	status, answer := http.StatusBadRequest, reply{"ok": false, "error": "invalid_payload"}
	a := args{}
	lost := false
	if err == nil && readPayload(r, body, a) == nil {
		effect := s.takeFault(&apiCall{method: "response_url", args: a})
		if effect != nil && effect.Error != "" {
			answer["error"] = effect.Error
		} else {
			status, answer = s.respond(r.PathValue("secret"), a)
		}
		lost = effect != nil && effect.DropResponse
	}
	s.calls.add(Call{Kind: "api", Name: "response_url", Request: a.logged(), Response: encode(answer), Status: status})
	if lost {
		dropConnection(w)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(encode(answer)) // a client that has gone away is not our trouble
}

// readPayload accepts JSON, and a form with the JSON in "payload".
func readPayload(r *http.Request, body []byte, into args) error {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form := args{}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		fields, err := readArgs(r)
		if err != nil {
			return err
		}
		maps.Copy(form, fields)
		return into.addJSON([]byte(form.str("payload")))
	}
	return into.addJSON(body)
}

func (s *Server) respond(secret string, a args) (int, reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := s.responses[secret]
	switch {
	case use == nil:
		return http.StatusNotFound, reply{"ok": false, "error": "no_such_url"}
	case time.Now().After(use.expires):
		return http.StatusNotFound, reply{"ok": false, "error": "expired_url"}
	case use.uses >= responseUses:
		return http.StatusNotFound, reply{"ok": false, "error": "used_url"}
	}
	use.uses++
	status, body, _ := s.envelope(nil, s.useResponse(use, a))
	if body["ok"] == false && status == http.StatusOK {
		status = http.StatusBadRequest
	}
	return status, body
}

// useResponse posts, replaces or deletes, as the body says.
func (s *Server) useResponse(use *responseURL, a args) error {
	t := s.timelines[use.channel]
	if a.flag("delete_original") {
		return s.deleteOriginal(t, use)
	}
	body, err := readContent(a)
	if err != nil {
		return err
	}
	if body.empty() {
		return fail("no_text")
	}
	body.cut()
	if a.flag("replace_original") && use.ts != "" {
		return s.replaceOriginal(t, use, a, body)
	}
	thread := a.str("thread_ts")
	if err := t.thread(thread); err != nil {
		return err
	}
	m := s.botMessage(t, thread, body)
	if a.str("response_type") == "in_channel" {
		return s.post(t, m)
	}
	s.postEphemeral(t, m, use.user)
	return nil
}

func (s *Server) deleteOriginal(t *timeline, use *responseURL) error {
	if use.ephemeral {
		return s.dropEphemeral(t, use.ts)
	}
	m := t.find(use.ts)
	if m == nil {
		return fail("message_not_found")
	}
	return s.remove(t, m)
}

func (s *Server) dropEphemeral(t *timeline, ts string) error {
	for i, m := range t.ephemerals {
		if m.TS == ts {
			t.ephemerals = append(t.ephemerals[:i:i], t.ephemerals[i+1:]...)
			s.notify("message_deleted", t.channel.ID, m)
			return nil
		}
	}
	return fail("message_not_found")
}

func (s *Server) replaceOriginal(t *timeline, use *responseURL, a args, body content) error {
	m := t.find(use.ts)
	if use.ephemeral {
		m = t.findEphemeral(use.ts)
	}
	if m == nil {
		return fail("message_not_found")
	}
	after, err := updated(m, a, body)
	if err != nil {
		return err
	}
	if use.ephemeral {
		*m = *after
		s.notify("message_changed", t.channel.ID, m)
		return nil
	}
	return s.change(t, m, after)
}

// commandAnswer posts what the app answered to a slash command in its ack.
func (s *Server) commandAnswer(secretUse *responseURL, raw json.RawMessage) error {
	a := args{}
	if err := a.addJSON(raw); err != nil {
		return err
	}
	if a.str("text") == "" && a.raw("blocks") == nil && a.raw("attachments") == nil {
		return nil // a bare ack
	}
	return s.useResponse(secretUse, a)
}
