package devslack

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// routes puts everything under one address.
func (s *Server) routes() http.Handler {
	control := http.NewServeMux()
	for pattern, run := range s.controlRoutes() {
		control.HandleFunc(pattern, controlHandler(run))
	}
	control.Handle("GET /_dev/events", s.hub)
	control.HandleFunc("/_dev/", func(w http.ResponseWriter, r *http.Request) {
		writeRefusal(w, http.StatusNotFound, "unknown_route", r.Method+" "+r.URL.Path)
	})
	control.HandleFunc("GET /archives/{channel}/{message}", s.followPermalink)
	control.Handle("/", pageHandler())

	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("GET /link/", s.serveSocket)
	mux.HandleFunc("POST /actions/{team}/{secret}", s.serveResponse)
	mux.HandleFunc("POST /commands/{team}/{secret}", s.serveResponse)
	mux.HandleFunc("POST /app/{team}/{secret}", s.serveResponse)
	mux.HandleFunc("POST /_upload/{secret}", s.serveUpload)
	mux.HandleFunc("GET /signin", signIn)
	mux.HandleFunc("GET /files-pri/{file}", s.serveFile)
	mux.HandleFunc("GET /files-pri/{file}/download", s.serveFile)
	mux.Handle("/", s.guarded(control))
	return s.tracked(mux)
}

// followPermalink leads from a permalink to the page, opened at the channel or
// the thread.
func (s *Server) followPermalink(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	t := s.timelines[r.PathValue("channel")]
	s.mu.Unlock()
	if t == nil {
		http.NotFound(w, r)
		return
	}
	target := "/#/" + r.PathValue("channel")
	if thread := r.FormValue("thread_ts"); thread != "" {
		if _, ok := parseTS(thread); !ok {
			http.NotFound(w, r)
			return
		}
		target += "/" + thread
	}
	if ts, ok := linkedTS(r.PathValue("message")); ok {
		target += "@" + ts
	}
	http.Redirect(w, r, target, http.StatusFound)
}

// linkedTS reads the message of a permalink: p and the digits of its ts.
func linkedTS(message string) (string, bool) {
	digits, ok := strings.CutPrefix(message, "p")
	if !ok || len(digits) < 7 {
		return "", false
	}
	ts := digits[:len(digits)-6] + "." + digits[len(digits)-6:]
	_, ok = parseTS(ts)
	return ts, ok
}

// controlFunc does one thing of the control plane and returns its answer.
type controlFunc func(r *http.Request) (any, error)

func (s *Server) controlRoutes() map[string]controlFunc {
	return map[string]controlFunc{
		"GET /_dev/workspace":  func(*http.Request) (any, error) { return s.Workspace(), nil },
		"GET /_dev/usergroups": func(*http.Request) (any, error) { return reply{"usergroups": s.Usergroups()}, nil },
		"GET /_dev/sockets":    func(*http.Request) (any, error) { return reply{"connections": s.Sockets()}, nil },
		"GET /_dev/messages": func(r *http.Request) (any, error) {
			messages, err := s.Messages(r.FormValue("channel"), r.FormValue("thread_ts"))
			return reply{"messages": messages}, err
		},
		"POST /_dev/messages": with(func(_ *http.Request, req MessageRequest) (any, error) {
			ts, err := s.SendMessage(req)
			return reply{"ok": true, "ts": ts}, err
		}),
		"POST /_dev/messages/edit":   done(func(req MessageRef) error { return s.EditMessage(req) }),
		"POST /_dev/messages/delete": done(func(req MessageRef) error { return s.DeleteMessage(req) }),
		"POST /_dev/reactions":       done(func(req MessageRef) error { return s.React(req) }),
		"POST /_dev/channels/join":   done(func(req MembershipRequest) error { return s.Join(req) }),
		"POST /_dev/channels/leave":  done(func(req MembershipRequest) error { return s.Leave(req) }),
		"POST /_dev/actions": with(func(r *http.Request, req ActionRequest) (any, error) {
			return s.Click(r.Context(), req)
		}),
		"GET /_dev/views": func(r *http.Request) (any, error) {
			views, err := s.Views(r.FormValue("user"))
			return reply{"views": views}, err
		},
		"POST /_dev/views/{id}/submit": with(func(r *http.Request, req SubmitRequest) (any, error) {
			return s.SubmitView(r.PathValue("id"), req)
		}),
		"POST /_dev/views/{id}/close": with(func(r *http.Request, req SubmitRequest) (any, error) {
			return s.CloseView(r.PathValue("id"), req.User)
		}),
		"POST /_dev/views/{id}/actions": with(func(r *http.Request, req ActionRequest) (any, error) {
			return s.ViewAction(r.PathValue("id"), req)
		}),
		"POST /_dev/shortcuts": with(func(_ *http.Request, req ShortcutRequest) (any, error) { return s.Shortcut(req) }),
		"GET /_dev/assistant": func(r *http.Request) (any, error) {
			threads, err := s.AgentThreads(r.FormValue("user"))
			return reply{"threads": threads}, err
		},
		"POST /_dev/assistant": with(func(_ *http.Request, req AssistantRequest) (any, error) {
			channel, ts, err := s.StartAssistant(req)
			return reply{"ok": true, "channel": channel, "thread_ts": ts}, err
		}),
		"POST /_dev/assistant/stop": done(func(req MessageRef) error { return s.StopAgent(req) }),
		"POST /_dev/channels": with(func(_ *http.Request, req ChannelRequest) (any, error) {
			channel, err := s.CreateChannel(req)
			return reply{"ok": true, "channel": channel}, err
		}),
		"POST /_dev/commands":  with(func(_ *http.Request, req CommandRequest) (any, error) { return s.Command(req) }),
		"POST /_dev/home":      done(func(req HomeRequest) error { return s.OpenTab(req) }),
		"POST /_dev/envelopes": with(func(_ *http.Request, req EnvelopeRequest) (any, error) { return s.SendEnvelope(req) }),
		"GET /_dev/calls":      s.listCalls,
		"POST /_dev/faults":    done(func(f Fault) error { return s.SetFault(f) }),
		"DELETE /_dev/faults":  func(*http.Request) (any, error) { s.ClearFaults(); return reply{"ok": true}, nil },
	}
}

func (s *Server) listCalls(r *http.Request) (any, error) {
	after := int64(0)
	if v := r.FormValue("after"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return nil, refuse("invalid_after", "after is a sequence number")
		}
		after = n
	}
	return reply{"calls": s.Calls(after)}, nil
}

// maxControlBody leaves room for the files of a message.
const maxControlBody = 64 << 20

// with decodes the body strictly: a misspelt field is told, not ignored.
func with[T any](run func(*http.Request, T) (any, error)) controlFunc {
	return func(r *http.Request) (any, error) {
		var req T
		dec := json.NewDecoder(io.LimitReader(r.Body, maxControlBody))
		dec.UseNumber()
		dec.DisallowUnknownFields()
		if err := dec.Decode(&req); err != nil {
			return nil, refuse("invalid_json", err.Error())
		}
		return run(r, req)
	}
}

// done is with for what answers nothing but ok.
func done[T any](run func(T) error) controlFunc {
	return with(func(_ *http.Request, req T) (any, error) { return reply{"ok": true}, run(req) })
}

func controlHandler(run controlFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := run(r)
		if err != nil {
			writeControlError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Write(encode(answer)) // a client that has gone away is not our trouble
	}
}

func writeControlError(w http.ResponseWriter, err error) {
	var refused *ControlError
	var slackErr *apiError
	switch {
	case errors.As(err, &refused):
		writeRefusal(w, refused.Status, refused.Code, refused.Message)
	case errors.As(err, &slackErr):
		writeRefusal(w, http.StatusBadRequest, slackErr.Code, "")
	default:
		writeRefusal(w, http.StatusInternalServerError, "internal_error", err.Error())
	}
}
