package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// A grant is what somebody allowed in advance, as programs see it.
type grant struct {
	GrantID    string            `json:"grantId"`
	Scope      ledger.GrantScope `json:"scope"`
	SessionID  string            `json:"sessionId"` // in which it was given; with the scope thread the only one where it holds
	ApprovalID string            `json:"approvalId"`
	ToolName   string            `json:"toolName"`
	Arguments  json.RawMessage   `json:"arguments"` // that have to be exactly so
	Any        []string          `json:"any"`       // arguments that may be anything
	Requesters []string          `json:"requesters"`
	Summary    string            `json:"summary"`
	Uses       int               `json:"uses"` // at most
	Used       int               `json:"used"`
	By         *person           `json:"by"`
	At         time.Time         `json:"at"`
	Until      time.Time         `json:"until"`
	Ended      string            `json:"ended,omitempty"` // why it allows nothing any more
}

func (v views) grant(g approvals.Grant) *grant {
	out := &grant{
		GrantID: g.ID, Scope: g.Body.Scope, SessionID: g.Session, ApprovalID: g.Body.Approval, ToolName: v.text(g.Body.Tool),
		Arguments: json.RawMessage("{}"), Any: []string{}, Requesters: []string{}, Summary: v.text(g.Body.Summary),
		Uses: g.Body.Uses, Used: g.Used, By: personOf(g.By), At: g.At.UTC(), Until: g.Body.Until.UTC(), Ended: v.text(g.Ended),
	}
	if len(g.Body.Arguments) > 0 {
		if raw, err := json.Marshal(g.Body.Arguments); err == nil {
			out.Arguments = v.redactor.JSON(raw)
		}
	}
	for _, name := range g.Body.Any {
		out.Any = append(out.Any, v.text(name))
	}
	for _, p := range g.Body.Requesters {
		out.Requesters = append(out.Requesters, p.ID)
	}
	return out
}

// getGrants lists what is allowed in advance: to those who may decide all of it, to others what was given in their own
// sessions.
func (s *Server) getGrants(w http.ResponseWriter, r *http.Request, t *Token) error {
	list := []*grant{}
	for _, g := range s.Grants.List(time.Now()) {
		see := t.may(ScopeDecide) || t.may(ScopeAll)
		if !see {
			info, found, err := s.sessions.session(r.Context(), g.Session)
			if err != nil {
				return err
			}
			see = found && info.of(t)
		}
		if see {
			list = append(list, s.views.grant(g))
		}
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "grants": list})
	return nil
}

// postRevoke ends a grant.
func (s *Server) postRevoke(w http.ResponseWriter, r *http.Request, t *Token) error {
	raw, err := readBody(r, maxDecision)
	if err != nil {
		return err
	}
	reason := ""
	if len(raw) > 0 {
		f := parseForm(raw)
		reason = f.text("reason")
		if err := f.done(); err != nil {
			return err
		}
	}
	id := r.PathValue("grantId")
	err = approvals.ErrNoGrant
	if s.Grants != nil {
		err = s.Grants.Revoke(r.Context(), id, s.actor(r.Context(), t), reason)
	}
	if ended, over := errors.AsType[*approvals.GrantOverError](err); over {
		return &problem{status: http.StatusGone, code: "EXPIRED", message: "This grant has ended already: " + s.views.text(ended.Why) + "."}
	}
	if refused, ok := errors.AsType[*approvals.RefusedError](err); ok {
		return forbidden("NOT_ALLOWED", refused.Reason).with("grantors", refused.Allowed)
	}
	if errors.Is(err, approvals.ErrNoGrant) {
		return &problem{status: http.StatusNotFound, code: "NOT_FOUND", message: "There is no grant " + clean(id) + "."}
	}
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "grantId": id})
	return nil
}
