package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/fields"
	"approvalbot/internal/ledger"
)

// Edit and Approve: a form with the arguments as fields. What a person sends is their change and their approval; the card
// then shows what was changed, and to others, if they have to approve it too, that it is another question now.
//
// What a form can't show exactly can't be changed in it: a text that is longer than Slack's fields, or that has characters
// in it that can't be seen. It is shown as fixed, and keeps its bytes. Where something is hidden from people there is no
// form at all: its fields would show it.

const (
	maxInputChars = 3000 // of what stands in a field, counted escaped
	maxFieldName  = 100
	maxHintChars  = 300

	actionValue = "value" // the action_id of each field
)

// fieldBlock is the block_id of the i-th field.
func fieldBlock(i int) string { return "argument." + strconv.Itoa(i) }

// An editor is the form of one ask: its fields, and which of them can be changed.
type editor struct {
	fields []fields.Field
	fixed  map[int]string // why a field can't be changed
}

// editing makes the form of an ask with a tool of this schema; nil if there is none.
func (v *renderer) editing(a *ledger.Approval, schema json.RawMessage) *editor {
	if !slices.Contains(a.Offers, ledger.OfferEdit) || v.hidesAnything(a) {
		return nil
	}
	all, err := fields.Of(schema, json.RawMessage(a.Arguments))
	if err != nil {
		return nil
	}
	e := &editor{fields: all, fixed: map[int]string{}}
	for i := range all {
		f := &all[i]
		if f.Kind == fields.Choice && !v.tellsApart(*f) {
			*f = f.AsJSON()
		}
		if f.Kind == fields.JSON && escapedChars(f.Value) > maxInputChars {
			f.Value = string(f.Raw) // without line breaks it may fit
		}
		switch _, marked := visible(strings.TrimRight(f.Value, "\n")); {
		case escapedChars(f.Value) > maxInputChars:
			e.fixed[i] = v.tf("%s: it is too long to be changed here and stays as it is.", v.count(utf8.RuneCountInString(f.Value), "character", "characters"))
		case marked:
			e.fixed[i] = v.t("It contains characters that can't be seen, so it can't be changed here and stays as it is.")
		}
	}
	if len(e.fixed) == len(all) {
		return nil
	}
	return e
}

// mayEdit tells whether the card of an ask offers to change it.
func (v *renderer) mayEdit(q request, a *ledger.Approval) bool {
	return slices.Contains(a.Offers, ledger.OfferEdit) && q.approvable(a) && q.secrets == 0
}

// hidesAnything tells whether something of a request is a secret that people aren't shown.
func (v *renderer) hidesAnything(a *ledger.Approval) bool {
	return v.redactor.Hides(a.Arguments) || v.request(a).secrets > 0
}

func escapedChars(s string) (n int) {
	for _, r := range s {
		n += escapedLen(r)
	}
	return n
}

// editForm is the form as a modal.
func (v *renderer) editForm(a *ledger.Approval, e *editor) slack.ModalViewRequest {
	_, content := v.headline(a)
	what := v.t("What you send is what is approved, exactly. Whoever approved it before has to look at it again.")
	if a.Quorum <= 1 && len(a.Votes) == 0 {
		what = v.t("What you send is what is approved and performed, exactly.")
	}
	blocks := []slack.Block{richText(append(content, paragraph(text(what)))...)}
	for i, f := range e.fields {
		name := v.argument(f.Title, maxFieldName)
		if why, fixed := e.fixed[i]; fixed {
			blocks = append(blocks, richText(paragraph(bold(name+v.t(": ")), text(why))))
			continue
		}
		blocks = append(blocks, v.input(i, f, name))
	}
	submit := v.t("Approve")
	if word, _ := approvals.Confirmation(a.ApprovalRequested); word != "" {
		submit = v.t("Continue")
	}
	return v.formModal(formEdit, revised(a.Approval, a.Revision()), v.t("Edit and approve"), submit, blocks...)
}

// argument is an argument's name for people; a name may be empty, a label may not.
func (v *renderer) argument(name string, max int) string {
	if shown := v.line(name, max); strings.TrimSpace(shown) != "" {
		return shown
	}
	return v.t("(no name)")
}

// input is one field.
func (v *renderer) input(i int, f fields.Field, name string) *slack.InputBlock {
	var hint *slack.TextBlockObject
	if words := v.line(f.Hint, maxHintChars); strings.TrimSpace(words) != "" {
		hint = plainText(words)
	}
	b := slack.NewInputBlock(fieldBlock(i), plainText(name), hint, v.control(f))
	// An empty text is a value, too: a field that must have one may be empty where its text is.
	b.Optional = !f.Required || f.Set && f.Kind == fields.Text && f.Value == ""
	return b
}

// control is what one writes or chooses in.
func (v *renderer) control(f fields.Field) slack.BlockElement {
	switch f.Kind {
	case fields.Number, fields.Integer:
		n := &slack.NumberInputBlockElement{Type: slack.METNumber, ActionID: actionValue, IsDecimalAllowed: f.Kind == fields.Number}
		n.InitialValue = f.Value
		return n
	case fields.Boolean, fields.Choice:
		return v.menu(f)
	}
	t := slack.NewPlainTextInputBlockElement(nil, actionValue)
	t.Multiline, t.InitialValue, t.MaxLength = f.Long, f.Value, maxInputChars
	return t
}

// option is what stands on one of a field's values.
func (v *renderer) option(kind fields.Kind, value json.RawMessage) string {
	var s string
	switch {
	case kind == fields.Boolean && string(value) == "true":
		return v.t("Yes")
	case kind == fields.Boolean:
		return v.t("No")
	case json.Unmarshal(value, &s) == nil && strings.TrimSpace(s) != "":
		return s
	}
	return string(value)
}

// tellsApart tells whether people can tell a field's values apart in a menu: each is there whole, and no two look the same
// (1 and "1" do).
func (v *renderer) tellsApart(f fields.Field) bool {
	seen := map[string]bool{}
	for _, o := range f.Options {
		whole := v.option(f.Kind, o)
		shown := asLong(v.line(whole, maxLabel), maxLabel)
		if seen[shown] || shown != v.line(whole, maxInputChars) {
			return false
		}
		seen[shown] = true
	}
	return true
}

// menu is a field with a few values.
func (v *renderer) menu(f fields.Field) *slack.SelectBlockElement {
	options := make([]*slack.OptionBlockObject, len(f.Options))
	for i, o := range f.Options {
		label := v.line(v.option(f.Kind, o), maxLabel)
		options[i] = slack.NewOptionBlockObject(strconv.Itoa(i), plainText(asLong(label, maxLabel)), nil)
	}
	m := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, actionValue, options...)
	if at := f.Option(); at >= 0 {
		m.InitialOption = options[at]
	}
	return m
}

// schemaOf is the schema of a run's tool, as the run's start recorded it.
func schemaOf(started *ledger.RunStarted, tool string) json.RawMessage {
	var specs []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"inputSchema"`
	}
	if started == nil || json.Unmarshal(started.Tools, &specs) != nil {
		return nil
	}
	for _, s := range specs {
		if s.Name == tool {
			return s.Schema
		}
	}
	return nil
}

// schema is that of the tool of an ask that is in memory.
func (o *outbox) schema(approval string) json.RawMessage {
	o.mu.Lock()
	call, run := o.book.ask(approval)
	var started *ledger.RunStarted
	var tool string
	if call != nil {
		started, tool = run.Started, call.Approval.Tool
	}
	o.mu.Unlock()
	return schemaOf(started, tool)
}

// edit is a click on Edit and Approve.
func (u *UI) edit(ctx context.Context, c *click) {
	s, a, ok := u.asked(ctx, c, ledger.Approved)
	if !ok {
		return
	}
	ctx = u.aboutSubject(ctx, s)
	v := u.renderer
	e := v.editing(a, u.outbox.schema(c.value))
	if e == nil {
		u.tell(ctx, c.heardAt(s), c.by.ID, v.t("This request can't be changed in a form. You can approve or deny it as it is, and say in a reason what you want instead."))
		return
	}
	u.open(ctx, c, s, v.editForm(a, e), v.t("The form didn't open, so nothing is changed or approved. Please try again."))
}

// edited is a form with arguments that was sent.
func (u *UI) edited(ctx context.Context, s *submission) {
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	approval, _, _ := strings.Cut(s.subject, ".")
	e, arguments, err := u.filledIn(limited, s, approval)
	if wrong, ok := errors.AsType[*inputError](err); ok {
		u.notFilledIn(ctx, s, wrong)
		return
	}
	var out approvals.Outcome
	if err == nil {
		out, err = u.agent.Amend(limited, approval, approvals.Edit{
			Arguments: string(arguments), Revision: revisionOf(s.subject, approval), By: s.by, Received: s.at,
		})
	}
	if err != nil {
		u.notEdited(ctx, s, e, err)
		return
	}
	u.afterEdit(ctx, s, out)
}

// An inputError says what is wrong with what was written into fields, by block_id.
type inputError struct{ fields map[string]string }

func (e *inputError) Error() string { return fmt.Sprintf("%d fields are wrong", len(e.fields)) }

// filledIn makes arguments of what was filled in. It is about the revision that the form showed, or an error.
func (u *UI) filledIn(ctx context.Context, s *submission, approval string) (*editor, json.RawMessage, error) {
	snap, pending := u.approvals.Find(approval)
	if !pending { // MayDecide says how it ended
		if err := u.approvals.MayDecide(ctx, approval, ledger.Approved, s.by); err != nil {
			return nil, nil, err
		}
		return nil, nil, approvals.ErrNotFound
	}
	if snap.Ask.Revision() != revisionOf(s.subject, approval) {
		return nil, nil, &approvals.ChangedError{Snapshot: snap}
	}
	v := u.renderer
	e := v.editing(&snap.Ask, u.outbox.schema(approval))
	if e == nil {
		return nil, nil, approvals.ErrNotFound
	}
	changed, wrong := map[string]json.RawMessage{}, map[string]string{}
	for i, f := range e.fields {
		if _, fixed := e.fixed[i]; fixed {
			continue
		}
		written := s.text(fieldBlock(i), actionValue)
		if f.Kind == fields.Choice || f.Kind == fields.Boolean {
			written = s.chosen(fieldBlock(i), actionValue)
		}
		value, touched, err := f.Read(written)
		switch {
		case err != nil:
			wrong[fieldBlock(i)] = v.misread(err)
		case touched:
			changed[f.Name] = value
		}
	}
	if len(wrong) > 0 {
		return e, nil, &inputError{wrong}
	}
	arguments, err := fields.Merge(json.RawMessage(snap.Ask.Arguments), changed)
	return e, arguments, err
}

// misread says what is wrong with what stands in a field.
func (v *renderer) misread(err error) string {
	switch {
	case errors.Is(err, fields.ErrNotNumber):
		return v.t("This has to be a number.")
	case errors.Is(err, fields.ErrNotInteger):
		return v.t("This has to be a whole number.")
	case errors.Is(err, fields.ErrNotJSON):
		return v.t("This has to be valid JSON.")
	case errors.Is(err, fields.ErrMissing):
		return v.t("This is needed.")
	}
	return v.t("This can't be read.")
}

func (u *UI) notFilledIn(ctx context.Context, s *submission, wrong *inputError) {
	if !s.wrong(wrong.fields) {
		u.tell(ctx, u.placeOf(ctx, s), s.by.ID, u.renderer.t("The form was not filled in right, so nothing is changed or approved. Please try again."))
	}
}

// notEdited says why a change was not taken, below the field that it is about, where there is one.
func (u *UI) notEdited(ctx context.Context, s *submission, e *editor, err error) {
	v := u.renderer
	field := ""
	if e != nil {
		field = e.first()
	}
	unfit, isUnfit := errors.AsType[*approvals.UnfitError](err)
	switch {
	case isUnfit && e != nil:
		if at := e.named(unfit.Member); at != "" {
			field = at
		}
		err = &approvals.RefusedError{Reason: unfit.Reason}
	case errors.Is(err, approvals.ErrUnchanged):
		err = &approvals.RefusedError{Reason: v.t("Nothing is changed. Change something, or use Approve on the card.")}
	}
	u.notDone(ctx, s, field, err)
}

// first is the first field that can be changed.
func (e *editor) first() string {
	for i := range e.fields {
		if _, fixed := e.fixed[i]; !fixed {
			return fieldBlock(i)
		}
	}
	return ""
}

// named is the field of an argument, if it can be changed.
func (e *editor) named(argument string) string {
	i := slices.IndexFunc(e.fields, func(f fields.Field) bool { return f.Name == argument })
	if _, fixed := e.fixed[i]; i < 0 || fixed {
		return ""
	}
	return fieldBlock(i)
}

// afterEdit says what a change came to, where the card alone doesn't.
func (u *UI) afterEdit(ctx context.Context, s *submission, out approvals.Outcome) {
	v := u.renderer
	a := &out.Snapshot.Ask
	voted := slices.ContainsFunc(a.Votes, func(vote ledger.Vote) bool { return vote.By.Person() == s.by.Person() })
	word, _ := approvals.Confirmation(a.ApprovalRequested)
	switch {
	case out.Resolution != nil:
		s.clear()
	case !voted && word != "" && u.approvals.MayDecide(ctx, a.Approval, ledger.Approved, s.by) == nil:
		view := v.confirmForm(a)
		if !s.receipt.answer(slack.NewUpdateViewSubmissionResponse(&view)) {
			u.tell(ctx, u.placeOf(ctx, s), s.by.ID, v.t("It is changed and not approved yet: its risk is critical. Click Approve on the card."))
		}
	default:
		p := v.changedBy(out, voted)
		u.conclude(ctx, s, ledger.Place{}, richText(paragraph(p.elements...)), "")
	}
}

// changedBy says to a person what their change came to that didn't end it.
func (v *renderer) changedBy(out approvals.Outcome, voted bool) *phrase {
	a := out.Snapshot.Ask
	what := slots{"what": func(p *phrase) { p.strong(p.v.request(&a).summary) }, "left": func(p *phrase) {
		p.say(v.count(max(1, out.Quorum-out.Approvals), "approval", "approvals"))
	}}
	if voted {
		return v.phrase().form("You changed and approved this: {what}. Still needed: {left}.", what)
	}
	return v.phrase().form("You changed this: {what}. Like this, others have to approve it. Still needed: {left}.", what)
}
