package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
)

// Allowing more than one call is done in a form: Allow for This Thread…, Allow Always….
//
// It says in words what will be covered, exactly, and lets people loosen it: an argument that they tick may be anything.
// Whenever they do, the words are written anew, and the form remembers which ticks its words are about. Only a form whose
// words are about the ticks that are sent counts, so what is recorded as the summary is what stood there. It is about one
// revision of the arguments, too. What is sent gives the grant and approves the request, as one; if the approval doesn't
// count any more, nothing is granted, and the form says so.

// The form and its fields.
const (
	callbackGrant = "grant"

	actionGrantAny  = "grant_any"   // ticks; the form is written anew
	actionGrantTime = "grant_until" //
	actionGrantUses = "grant_uses"  //

	blockGrantTime = "until"
	blockGrantUses = "uses"
	blockGrantAny  = "any" // with a number: Slack takes ten boxes at most in one
)

const (
	maxBoxes      = 10  // of one element
	maxBoxChars   = 70  // beside a box
	maxLoosened   = 50  // arguments that have a box
	maxValueChars = 300 // of an argument's value in the form; the card has all of it
	usualUses     = 10

	// grantCheck bounds the look-up before the form is opened: Slack gives three seconds for that, and whoever may not
	// learns it from the form.
	grantCheck = time.Second
)

// A grantForm is what a form is about: its private_metadata.
type grantForm struct {
	Approval string            `json:"a"`
	Scope    ledger.GrantScope `json:"s"`
	Revision int               `json:"r,omitempty"`
	Any      []int             `json:"any,omitempty"` // places of the ticked arguments in their order, that its words are about
}

func (f grantForm) String() string {
	out, err := json.Marshal(f)
	if err != nil {
		panic("slackui: encode what a form is about: " + err.Error())
	}
	return string(out)
}

func readGrantForm(subject string) (f grantForm, ok bool) {
	dec := json.NewDecoder(strings.NewReader(subject))
	dec.DisallowUnknownFields()
	err := dec.Decode(&f)
	return f, err == nil && !dec.More() && f.Approval != "" && (f.Scope == ledger.GrantThread || f.Scope == ledger.GrantAlways)
}

// A grantSpan is a time for which a grant can be given.
type grantSpan struct {
	value string
	long  time.Duration
}

var grantSpans = []grantSpan{{"1h", time.Hour}, {"4h", 4 * time.Hour}, {"1d", 24 * time.Hour}, {"7d", 7 * 24 * time.Hour}, {"30d", 30 * 24 * time.Hour}}

// longest is how long a grant of a scope can last.
func longest(s ledger.GrantScope) time.Duration {
	if s == ledger.GrantAlways {
		return approvals.MaxAlwaysGrant
	}
	return approvals.MaxThreadGrant
}

func (v *renderer) spanName(s grantSpan) string {
	if days := int(s.long / (24 * time.Hour)); days > 0 {
		return v.count(days, "day", "days")
	}
	return v.lasting(s.long)
}

// openGrant is a click on Allow for This Thread… or Allow Always….
func (u *UI) openGrant(ctx context.Context, c *click) {
	c.receipt.ack() // nothing is decided; the form is the answer
	s, ok, err := u.subject(ctx, c)
	ctx = u.aboutSubject(ctx, s)
	switch {
	case err != nil || !ok:
		u.disown(ctx, c, u.renderer.t(unknownCard))
		return
	case c.modal() && c.subject != c.value, !c.modal() && !s.belongs(c):
		u.misfit(ctx, c, s)
		return
	}
	checking, cancel := context.WithTimeout(ctx, grantCheck)
	err = u.approvals.MayGrant(checking, c.value, c.by)
	late := checking.Err() != nil
	cancel()
	if err != nil && !late {
		u.refuse(ctx, c, u.renderer.refusal(err))
		return
	}
	f := grantForm{Approval: c.value, Scope: ledger.GrantThread}
	if c.action == actionGrantAll {
		f.Scope = ledger.GrantAlways
	}
	view, why := u.outbox.grantForm(f, true)
	if why != "" {
		u.refuse(ctx, c, why)
		return
	}
	opening, cancel := context.WithTimeout(ctx, triggerLimit)
	defer cancel()
	open := u.client.api.OpenViewContext
	if c.modal() {
		open = u.client.api.PushViewContext
	}
	if _, err := open(opening, c.trigger, view); err != nil {
		u.logger(ctx).Warn("a form could not be opened", "error", err)
		u.refuse(ctx, c, u.renderer.t("The form could not be opened in time. Nothing was granted; please click again."))
	}
}

// loosen is a tick in the form: what it covers is written anew.
func (u *UI) loosen(ctx context.Context, c *click) {
	c.receipt.ack()
	f, ok := readGrantForm(c.subject)
	if !ok || !c.modal() {
		u.logger(ctx).Warn("a tick in a form that isn't known")
		return
	}
	f.Any = ticked(c.values)
	u.rewrite(ctx, c.view, f)
}

// rewrite shows a form with other words. Ticks are worked off in their order, so the last one's words stay.
func (u *UI) rewrite(ctx context.Context, view string, f grantForm) {
	next, why := u.outbox.grantForm(f, false)
	if why != "" {
		next = u.renderer.lastModal(sentenceBlock(why))
	}
	if _, err := u.client.api.UpdateViewContext(ctx, next, "", "", view); err != nil {
		u.logger(ctx).Warn("a form could not be written anew", "error", err)
	}
}

// ticked are the boxes that are ticked, in order.
func ticked(values map[string]map[string]slack.BlockAction) (all []int) {
	for block, fields := range values {
		if !strings.HasPrefix(block, blockGrantAny) {
			continue
		}
		for _, o := range fields[actionGrantAny].SelectedOptions {
			if n, err := strconv.Atoi(o.Value); err == nil && n >= 0 {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// give is a form that was sent: it grants, and approves the request that it stands on.
func (u *UI) give(ctx context.Context, s *submission) {
	f, ok := readGrantForm(s.subject)
	if !ok {
		s.wrong(map[string]string{blockGrantUses: u.renderer.t("This form is not one of mine. Nothing was granted.")})
		return
	}
	limited, cancel := context.WithTimeout(ctx, decideLimit)
	defer cancel()
	place, revision, summary, any, why := u.outbox.grantTerms(f)
	t := approvals.Terms{Scope: f.Scope, Revision: revision, Any: any, Summary: summary}
	wrong := map[string]string{}
	if why != "" {
		wrong[blockGrantUses] = why
	} else if now := ticked(s.values); !slices.Equal(now, f.Any) {
		f.Any = now
		wrong[blockGrantUses] = u.renderer.t("What it covers has changed with your ticks. Read it again, then send it. Nothing was granted yet.")
		defer u.rewrite(ctx, s.view, f)
	}
	var err error
	if t.Uses, err = strconv.Atoi(strings.TrimSpace(s.text(blockGrantUses, actionGrantUses))); err != nil || t.Uses < 1 || t.Uses > approvals.MaxGrantUses {
		wrong[blockGrantUses] = u.renderer.tf("A whole number from 1 to %d, please.", approvals.MaxGrantUses)
	}
	chosen := slices.IndexFunc(grantSpans, func(one grantSpan) bool { return one.value == s.chosen(blockGrantTime, actionGrantTime) })
	if chosen < 0 || grantSpans[chosen].long > longest(f.Scope) {
		wrong[blockGrantTime] = u.renderer.t("Please choose one of these.")
	}
	if len(wrong) > 0 {
		u.amiss(ctx, s, place, wrong)
		return
	}
	t.Until = time.Now().Add(grantSpans[chosen].long)
	_, err = u.grants.Give(limited, f.Approval, t, approvals.Decision{By: s.by, Received: s.at})
	if err != nil {
		u.logger(ctx).Info("nothing was granted", "error", err)
		u.amiss(ctx, s, place, map[string]string{blockGrantUses: u.renderer.notGranted(err)})
		return
	}
	s.close()
}

// amiss says what is wrong with a form, in it, or where that is too late privately.
func (u *UI) amiss(ctx context.Context, s *submission, at ledger.Place, wrong map[string]string) {
	if s.wrong(wrong) {
		return
	}
	var sentences []string
	for _, block := range slices.Sorted(maps.Keys(wrong)) {
		sentences = append(sentences, escape(wrong[block]))
	}
	u.tell(ctx, at, s.by.ID, strings.Join(sentences, " "))
}

// notGranted says, as plain text, why nothing was granted.
func (v *renderer) notGranted(err error) string {
	if e, ok := errors.AsType[*approvals.RefusedError](err); ok {
		return v.sentence(v.lang.Recorded(v.line(e.Reason, maxReasonChars)), v.t("You can't do that here"))
	}
	_, _, over := approvals.Ended(err)
	_, isChanged := errors.AsType[*approvals.ChangedError](err)
	switch {
	case over, errors.Is(err, approvals.ErrNotGiven):
		return v.t("This request was decided or ended meanwhile, so nothing was granted. The card shows how.")
	case errors.Is(err, approvals.ErrChanged), isChanged:
		return v.t("The arguments were changed meanwhile, so nothing was granted. Close this, and look at the card again.")
	case errors.Is(err, approvals.ErrOutdated):
		return v.t("The tool or the rules have changed since this was asked, so nothing can be allowed in advance here. Nothing was decided. You can still approve or deny the request on the card.")
	case errors.Is(err, ledger.ErrNotRecorded):
		return v.t("I can't record this, so nothing is approved and nothing granted. Try again.")
	case errors.Is(err, approvals.ErrTerms):
		return v.t("A call like this can't be allowed in advance in this way. Nothing was granted.")
	}
	return v.t("Something went wrong on my side, so nothing was granted. Try again.")
}

// grantForm renders the form of an ask that is in memory, or says why there is none, in mrkdwn. A fresh one takes the
// revision that the ask has now.
func (o *outbox) grantForm(f grantForm, fresh bool) (slack.ModalViewRequest, string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a, why := o.granting(f.Approval)
	switch {
	case why != "":
		return slack.ModalViewRequest{}, why
	case fresh:
		f.Revision = a.Revision()
	case f.Revision != a.Revision():
		return slack.ModalViewRequest{}, o.renderer.notGranted(approvals.ErrChanged)
	}
	view, ok := o.renderer.grantForm(a, f)
	if !ok {
		return view, o.renderer.notGranted(approvals.ErrTerms)
	}
	return view, ""
}

// granting finds an ask on which something can be granted, or says why nothing can. o.mu is held.
func (o *outbox) granting(approval string) (*ledger.Approval, string) {
	call, _ := o.book.ask(approval)
	if call == nil || !call.Approval.Open() {
		return nil, o.renderer.notGranted(approvals.ErrNotGiven)
	}
	return call.Approval, ""
}

// grantTerms are what a form's words are about: the arguments that may be anything, and the words themselves.
func (o *outbox) grantTerms(f grantForm) (at ledger.Place, revision int, summary string, any []string, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	a, why := o.granting(f.Approval)
	if why != "" {
		return at, 0, "", nil, why
	}
	g, ok := o.renderer.cover(a, f)
	if !ok {
		return a.Place, 0, "", nil, o.renderer.notGranted(approvals.ErrTerms)
	}
	return a.Place, f.Revision, g.summary(), g.loose(), ""
}

// A coverage is what a grant covers, in words.
type coverage struct {
	v     *renderer
	a     *ledger.Approval
	form  grantForm
	exact bool
	names []string // of the arguments, in order
	args  map[string]json.RawMessage
}

// cover reads what a form is about; false: no grant can be about that.
func (v *renderer) cover(a *ledger.Approval, f grantForm) (coverage, bool) {
	g := coverage{v: v, a: a, form: f, exact: approvals.ExactOnly(a)}
	if json.Unmarshal([]byte(a.Arguments), &g.args) != nil || g.args == nil {
		return g, false
	}
	g.names = slices.Sorted(maps.Keys(g.args))
	for _, n := range f.Any {
		if n >= len(g.names) || n >= maxLoosened || n < 0 || g.exact {
			return g, false
		}
	}
	return g, true
}

func (g coverage) loose() (names []string) {
	for _, n := range g.form.Any {
		names = append(names, g.names[n])
	}
	return names
}

// lines are the conditions, each of which has to hold.
func (g coverage) lines() []*phrase {
	v := g.v
	var lines []*phrase
	if g.exact {
		lines = append(lines, v.phrase().form("Exactly this call, with exactly these arguments; another one asks", nil))
	}
	for i, name := range g.names {
		switch {
		case g.exact:
		case slices.Contains(g.form.Any, i):
			lines = append(lines, v.anything(name))
		default:
			lines = append(lines, v.exactly(name, g.args[name], maxValueChars))
		}
	}
	if !g.exact {
		lines = append(lines, v.phrase().form("There is no other argument", nil))
	}
	if len(g.names) > 0 && len(g.form.Any) == len(g.names) {
		lines = append(lines, v.phrase().form("So it is *every* call with no more than these arguments", nil))
	}
	who := func(p *phrase) { v.people(p, actorsOf(g.a.Requesters, ledger.Actor{})) }
	lines = append(lines, v.phrase().form("Nobody but {people} asked for it", slots{"people": who}))
	if g.form.Scope == ledger.GrantAlways {
		return append(lines, v.phrase().form("In *every* conversation that works in the same directory", nil))
	}
	return append(lines, v.phrase().form("Only in this conversation", nil))
}

// exactly is the condition that an argument has one value.
func (v *renderer) exactly(name string, value json.RawMessage, most int) *phrase {
	return v.phrase().form("{argument} is exactly {value}", slots{
		"argument": func(p *phrase) { p.name(v.member(name)) },
		"value":    func(p *phrase) { p.name(v.line(string(value), most)) },
	})
}

// anything is the condition that an argument is free.
func (v *renderer) anything(name string) *phrase {
	return v.phrase().form("{argument} may be *anything*, or missing", slots{"argument": func(p *phrase) { p.name(v.member(name)) }})
}

// member is the name of an argument as it is shown: quoted, where there would be nothing to see.
func (v *renderer) member(name string) string {
	if strings.TrimSpace(name) == "" {
		name = strconv.Quote(name)
	}
	return v.line(name, maxNameChars)
}

// name adds the name or the value of something, as it is written.
func (p *phrase) name(shown string) {
	p.elements = append(p.elements, code(shown))
	p.plain.WriteString(shown)
}

// summary is what is covered as one text, as the form shows it.
func (g coverage) summary() string {
	var parts []string
	if g.exact { // the form shows the arguments themselves
		for _, name := range g.names {
			parts = append(parts, g.v.exactly(name, g.args[name], maxValueChars).plain.String())
		}
	}
	for _, line := range g.lines() {
		parts = append(parts, line.plain.String())
	}
	return g.v.request(g.a).tool + g.v.t(": ") + strings.Join(parts, g.v.t("; "))
}

// grantForm is the form itself; false: no grant can be about that.
func (v *renderer) grantForm(a *ledger.Approval, f grantForm) (slack.ModalViewRequest, bool) {
	q := v.request(a)
	g, ok := v.cover(a, f)
	if !ok || q.secrets > 0 || len(a.Requesters) == 0 {
		return slack.ModalViewRequest{}, false
	}
	title := v.t("Allow for this thread")
	if f.Scope == ledger.GrantAlways {
		title = v.t("Allow always")
	}
	var rows []slack.RichTextElement
	for _, line := range g.lines() {
		rows = append(rows, paragraph(line.elements...))
	}
	lead := v.phrase().form("From now on calls of {tool} start *without asking*, if all of this holds:",
		slots{"tool": func(p *phrase) { p.name(q.tool) }})
	content := []slack.RichTextElement{paragraph(bold(q.summary)), paragraph(lead.elements...)}
	if g.exact {
		content = append(content, v.excerpt(q.raw, usualRoom.excerpt, excerptLines)...)
	}
	blocks := []slack.Block{richText(append(content, slack.NewRichTextList(slack.RTEListBullet, 0, rows...))...)}
	blocks = append(blocks, g.boxes()...)
	blocks = append(blocks, v.grantTime(f.Scope), v.grantUses(),
		note(v.t("Sending this also approves the request on the card. What the rules deny stays denied. It ends at once when somebody revokes it, and when the tool or the rules change.")))
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: callbackGrant, PrivateMetadata: f.String(),
		Title: label(title), Submit: label(v.t("Allow")), Close: label(v.t("Cancel")),
		Blocks: slack.Blocks{BlockSet: blocks},
	}, true
}

// label is a text of ours on something that is no message.
func label(s string) *slack.TextBlockObject {
	return slack.NewTextBlockObject(slack.PlainTextType, s, false, false)
}

// boxes are a box for each argument that can be loosened.
func (g coverage) boxes() (blocks []slack.Block) {
	if g.exact {
		return nil
	}
	names := g.names[:min(len(g.names), maxLoosened)]
	for from := 0; from < len(names); from += maxBoxes {
		var options, initial []*slack.OptionBlockObject
		for n := from; n < min(from+maxBoxes, len(names)); n++ {
			o := slack.NewOptionBlockObject(strconv.Itoa(n), label(cutShown(g.v.member(names[n]), maxBoxChars)), nil)
			options = append(options, o)
			if slices.Contains(g.form.Any, n) {
				initial = append(initial, o)
			}
		}
		element := slack.NewCheckboxGroupsBlockElement(actionGrantAny, options...)
		element.InitialOptions = initial
		b := slack.NewInputBlock(fmt.Sprintf("%s%d", blockGrantAny, from/maxBoxes), label(g.v.t("These may be anything")), nil, element)
		b.Optional, b.DispatchAction = true, true
		blocks = append(blocks, b)
	}
	return blocks
}

func (v *renderer) grantTime(scope ledger.GrantScope) slack.Block {
	var options []*slack.OptionBlockObject
	for _, s := range grantSpans {
		if s.long <= longest(scope) {
			options = append(options, slack.NewOptionBlockObject(s.value, label(v.spanName(s)), nil))
		}
	}
	choice := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, nil, actionGrantTime, options...)
	choice.InitialOption = options[0]
	return slack.NewInputBlock(blockGrantTime, label(v.t("For how long")), nil, choice)
}

func (v *renderer) grantUses() slack.Block {
	number := slack.NewNumberInputBlockElement(nil, actionGrantUses, false)
	number.MinValue, number.MaxValue, number.InitialValue = "1", strconv.Itoa(approvals.MaxGrantUses), strconv.Itoa(usualUses)
	return slack.NewInputBlock(blockGrantUses, label(v.t("How often at most")), nil, number)
}

// granted says of a call which grant allowed it; nil if none did.
func (v *renderer) granted(d *ledger.PermissionDecided) *phrase {
	if d == nil || d.Grant == "" || d.GrantBy == nil {
		return nil
	}
	return v.phrase().form("Allowed by the grant of {who}, until {until} ({use})", slots{
		"who":   func(p *phrase) { p.who(*d.GrantBy) },
		"until": func(p *phrase) { p.at(d.GrantUntil) },
		"use":   saying(v.tf("%d of %d uses", d.GrantUse, d.GrantUses)),
	})
}

// alsoAllowed says on a card what was granted with it; nil if nothing was.
func (v *renderer) alsoAllowed(a *ledger.Approval) []slack.RichTextElement {
	if a.Resolved == nil || a.Resolved.Granted == nil {
		return nil
	}
	g := a.Resolved.Granted
	s := slots{
		"until": func(p *phrase) { p.at(g.Until) },
		"times": saying(v.count(g.Uses, "time", "times")),
	}
	p := v.phrase()
	if g.Scope == ledger.GrantAlways {
		p.form("*Also allowed* from now on, in every conversation, until {until}, {times} at most.", s)
	} else {
		p.form("*Also allowed* from now on, in this conversation, until {until}, {times} at most.", s)
	}
	return []slack.RichTextElement{paragraph(p.elements...)}
}
