package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// maxDecision is the size of the largest decision: a word and some words of a person.
const maxDecision = 64 << 10

// getApprovals lists what waits for people.
func (s *Server) getApprovals(w http.ResponseWriter, r *http.Request, t *Token) error {
	pending := []*request{}
	for _, snap := range s.Approvals.Pending(r.URL.Query().Get("runId")) {
		see, err := s.maySeeAsk(r, t, snap)
		if err != nil {
			return err
		}
		if see {
			s.listed(r, t, snap)
			pending = append(pending, s.views.snapshot(snap))
		}
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "pending": pending})
	return nil
}

// listed counts an ask as shown to a program that polls and may decide it.
func (s *Server) listed(r *http.Request, t *Token, snap approvals.Snapshot) {
	here := slices.Contains(snap.Ask.Surfaces, ledger.SurfaceHTTP)
	if !here || len(snap.Ask.Shown) > 0 || !t.may(ScopeDecide) {
		return
	}
	err := s.Approvals.Shown(r.Context(), snap.ID, approvals.Showing{Surface: ledger.SurfaceHTTP})
	if _, _, over := approvals.Ended(err); err != nil && !over {
		s.Logger.Warn("a showing could not be recorded", "run", snap.Run, "approval", snap.ID, "error", err)
	}
}

// maySeeAsk: those who may decide see every ask, others those of their own sessions.
func (s *Server) maySeeAsk(r *http.Request, t *Token, snap approvals.Snapshot) (bool, error) {
	if t.may(ScopeDecide) || t.may(ScopeAll) {
		return true, nil
	}
	info, found, err := s.sessions.session(r.Context(), snap.Session)
	return found && info.of(t), err
}

// postApproval takes a decision.
func (s *Server) postApproval(w http.ResponseWriter, r *http.Request, t *Token) error {
	raw, err := readBody(r, maxDecision)
	if err != nil {
		return err
	}
	f := parseForm(raw)
	word, reason, confirm := f.required("decision"), f.text("reason"), f.text("confirm")
	types := map[string]ledger.ResolutionType{"approve": ledger.Approved, "deny": ledger.Denied}
	if _, ok := types[word]; !ok && len(f.inField["decision"]) == 0 {
		f.wrong("decision", "it has to be approve or deny")
	}
	revision, named := f.count("revision")
	if err := f.done(); err != nil {
		return err
	}
	if !named && types[word] == ledger.Denied {
		revision = approvals.AnyRevision
	}
	key := approvals.Key{Run: r.PathValue("runId"), Call: r.PathValue("toolCallId")}
	out, err := s.Approvals.Resolve(r.Context(), key, approvals.Decision{
		Type: types[word], Reason: reason, By: s.actor(r.Context(), t), Revision: revision, Confirmed: confirm,
	})
	if err != nil {
		return s.undecided(key, err)
	}
	body := map[string]any{"ok": true, "pending": s.views.snapshot(out.Snapshot), "resolution": nil}
	if out.Resolution != nil {
		body["resolution"] = s.views.resolution(&out.Resolution.ApprovalResolved, out.Resolution.At)
	}
	answer(w, http.StatusOK, body)
	return nil
}

// undecided is the answer to a decision that didn't count.
func (s *Server) undecided(key approvals.Key, err error) error {
	if res, snap, over := approvals.Ended(err); over {
		p := &problem{status: http.StatusGone, code: "EXPIRED", message: "This request is over and was not performed: " + strings.TrimRight(s.views.text(res.Reason), ".") + "."}
		if _, decided := errors.AsType[*approvals.ConflictError](err); decided {
			p.status, p.code, p.message = http.StatusConflict, "ALREADY_DECIDED", s.decidedBy(res)
		}
		p.more = map[string]any{
			"resolution": s.views.resolution(&res.ApprovalResolved, res.At),
			"pending":    s.views.snapshot(snap),
		}
		return p
	}
	if errors.Is(err, approvals.ErrNotFound) {
		return &problem{status: http.StatusNotFound, code: "NOT_FOUND", message: fmt.Sprintf(
			"No pending approval found for run %s and tool call %s. It may have already been resolved or timed out.", clean(key.Run), clean(key.Call))}
	}
	if e, ok := errors.AsType[*approvals.ChangedError](err); ok {
		return s.changed(e)
	}
	if e, ok := errors.AsType[*approvals.UnconfirmedError](err); ok {
		return s.unconfirmed(e)
	}
	if p, ok := errors.AsType[*approvals.PausedError](err); ok {
		return s.paused(p.Pause)
	}
	if p, ok := errors.AsType[*approvals.RefusedError](err); ok {
		return forbidden("NOT_ALLOWED", p.Reason).with("approvers", p.Allowed)
	}
	return err
}

func (s *Server) decidedBy(res approvals.Resolution) string {
	who := "Somebody"
	if res.By != nil {
		who = res.By.DisplayName()
	}
	how := ""
	if res.EditedBy != nil {
		how = ", with other arguments"
	}
	return fmt.Sprintf("%s has already %s this%s, at %s.", who, res.Type, how, res.At.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// changed is the answer to a decision about arguments that aren't asked about any more. It is still pending.
func (s *Server) changed(e *approvals.ChangedError) error {
	by, n := e.By(), e.Snapshot.Ask.Revision()
	if n == 0 { // nobody did: what was decided about hasn't been there
		p := &problem{status: http.StatusConflict, code: "CHANGED", message: "Nobody has changed the arguments, so there is no such revision, and nothing was decided. Leave \"revision\" out, or send 0."}
		return p.with("pending", s.views.snapshot(e.Snapshot))
	}
	p := &problem{status: http.StatusConflict, code: "CHANGED", message: fmt.Sprintf(
		"%s has changed the arguments, so nothing was decided. Look at pending.argumentsJson; to decide about that, send \"revision\":%d.",
		s.views.text(by.DisplayName()), n)}
	return p.with("pending", s.views.snapshot(e.Snapshot))
}

// unconfirmed is the answer to an approval that lacks the word which a critical one takes. It is still pending.
func (s *Server) unconfirmed(e *approvals.UnconfirmedError) error {
	word, isTool := approvals.Confirmation(e.Snapshot.Ask.ApprovalRequested)
	what := "what it is about"
	if isTool {
		what = "the tool's name"
	}
	return &problem{status: http.StatusBadRequest, code: "INVALID_REQUEST", message: "the request is not valid", validation: &validation{
		FormErrors: []string{}, FieldErrors: map[string][]string{"confirm": {fmt.Sprintf(
			"the risk is critical: to approve it, send %s here, which is %q; nothing was decided", what, s.views.text(word))}},
	}}
}

// postExtend moves a deadline.
func (s *Server) postExtend(w http.ResponseWriter, r *http.Request, t *Token) error {
	raw, err := readBody(r, maxDecision)
	if err != nil {
		return err
	}
	if len(raw) > 0 {
		if err := parseForm(raw).done(); err != nil {
			return err
		}
	}
	key := approvals.Key{Run: r.PathValue("runId"), Call: r.PathValue("toolCallId")}
	until, err := s.Approvals.ExtendCall(r.Context(), key, s.actor(r.Context(), t))
	switch {
	case errors.Is(err, approvals.ErrNoMoreTime):
		return &problem{status: http.StatusForbidden, code: "NO_MORE_TIME", message: "the deadline is as late as it can be, so it stays as it is (APPROVALBOT_MORE_TIME)"}
	case errors.Is(err, approvals.ErrInvalid):
		return &problem{status: http.StatusForbidden, code: "NOT_SHOWN", message: "it hasn't been shown to anyone yet, so its time hasn't begun"}
	case err != nil:
		return s.undecided(key, err)
	}
	answer(w, http.StatusOK, map[string]any{"ok": true, "expiresAt": until.UTC()})
	return nil
}
