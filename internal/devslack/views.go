package devslack

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// View is a modal or a Home tab as Slack returns it.
type View struct {
	ID              string          `json:"id"`
	TeamID          string          `json:"team_id"`
	Type            string          `json:"type"`
	Title           json.RawMessage `json:"title,omitempty"`
	Submit          json.RawMessage `json:"submit"`
	Close           json.RawMessage `json:"close"`
	Blocks          json.RawMessage `json:"blocks"`
	PrivateMetadata string          `json:"private_metadata"`
	CallbackID      string          `json:"callback_id"`
	ExternalID      string          `json:"external_id"`
	State           viewState       `json:"state"`
	Hash            string          `json:"hash"`
	ClearOnClose    bool            `json:"clear_on_close"`
	NotifyOnClose   bool            `json:"notify_on_close"`
	RootViewID      string          `json:"root_view_id"`
	PreviousViewID  *string         `json:"previous_view_id"`
	AppID           string          `json:"app_id"`
	InstalledTeamID string          `json:"app_installed_team_id"`
	BotID           string          `json:"bot_id"`

	user   string
	chosen map[string]map[string]any
}

type viewState struct {
	Values map[string]any `json:"values"`
}

// viewStore holds the views that are open. They live no longer than the
// process, as a modal lives no longer than its client.
type viewStore struct {
	byID   map[string]*View
	stacks []*viewStack
	homes  []*View
	hashes int
}

// viewStack is the modals of one person, the visible one last.
type viewStack struct {
	user  string
	views []*View
}

const (
	maxStack    = 3
	maxViewSize = 250_000
)

func (vs *viewStore) stack(user string) *viewStack {
	for _, st := range vs.stacks {
		if st.user == user {
			return st
		}
	}
	st := &viewStack{user: user}
	vs.stacks = append(vs.stacks, st)
	return st
}

func (st *viewStack) top() *View {
	if len(st.views) == 0 {
		return nil
	}
	return st.views[len(st.views)-1]
}

func (vs *viewStore) home(user string) *View {
	for _, v := range vs.homes {
		if v.user == user {
			return v
		}
	}
	return nil
}

// byExternal finds a view by the id that the app gave it.
func (vs *viewStore) byExternal(id string) *View {
	for _, v := range vs.byID {
		if id != "" && v.ExternalID == id {
			return v
		}
	}
	return nil
}

// drop takes views off the stack.
func (vs *viewStore) drop(st *viewStack, from int) {
	for _, v := range st.views[from:] {
		delete(vs.byID, v.ID)
	}
	st.views = st.views[:from]
}

// readView checks a view that the app sent.
func (s *Server) readView(raw json.RawMessage, kind string) (*View, error) {
	if raw == nil {
		return nil, &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] missing required field: view"}}
	}
	if len(raw) > maxViewSize {
		return nil, fail("view_too_large")
	}
	normalized, problems := checkView(raw)
	if len(problems) > 0 {
		return nil, invalidBlocks("invalid_arguments", problems)
	}
	v := &View{}
	if err := json.Unmarshal(normalized, v); err != nil {
		return nil, &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] " + err.Error() + " [json-pointer:/view]"}}
	}
	if v.Type != kind {
		return nil, &apiError{Code: "invalid_arguments", Messages: []string{
			fmt.Sprintf("[ERROR] must be %q [json-pointer:/view/type]", kind)}}
	}
	v.TeamID, v.InstalledTeamID = s.ws.Team.ID, s.ws.Team.ID
	v.AppID, v.BotID = s.ws.App.ID, s.ws.App.BotID
	v.Submit, v.Close = orNull(v.Submit), orNull(v.Close)
	v.PreviousViewID, v.ID, v.RootViewID = nil, "", ""
	v.chosen = map[string]map[string]any{}
	return v, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// settle fills in what changes with every version of a view.
func (vs *viewStore) settle(v *View) {
	vs.hashes++
	v.Hash = fmt.Sprintf("%d.%s", time.Now().Unix(), hexID(4)+fmt.Sprint(vs.hashes))
	v.State.Values = stateValues(v.Blocks, v.chosen)
}

// push puts a new modal on top of the person's stack.
func (s *Server) push(st *viewStack, v *View) error {
	if len(st.views) >= maxStack {
		return fail("push_limit_reached")
	}
	if v.ExternalID != "" && s.views.byExternal(v.ExternalID) != nil {
		return fail("duplicate_external_id")
	}
	v.ID, v.user = slackID("V"), st.user
	v.RootViewID = v.ID
	if top := st.top(); top != nil {
		v.RootViewID = st.views[0].ID
		v.PreviousViewID = &top.ID
	}
	s.views.settle(v)
	s.views.byID[v.ID] = v
	st.views = append(st.views, v)
	s.viewChanged("view", v)
	return nil
}

func (s *Server) viewChanged(kind string, v *View) {
	s.hub.publish(map[string]any{"type": kind, "user": v.user, "view_id": v.ID, "view_type": v.Type})
}

func (s *Server) viewsOpen(c *apiCall) (reply, error) {
	v, err := s.readView(c.args.raw("view"), "modal")
	if err != nil {
		return nil, err
	}
	t, err := s.exchange(s.triggerArg(c))
	if err != nil {
		return nil, err
	}
	st := s.views.stack(t.user)
	before := st.views
	if v.ExternalID != "" && s.views.byExternal(v.ExternalID) != nil {
		return nil, fail("duplicate_external_id")
	}
	s.views.drop(st, 0) // a person sees one stack of an app; opening starts a new one
	for _, old := range before {
		s.viewChanged("view_closed", old)
	}
	if err := s.push(st, v); err != nil {
		return nil, err
	}
	return reply{"view": v.copy()}, nil
}

// triggerArg accepts the newer name of the argument, too.
func (s *Server) triggerArg(c *apiCall) string {
	if id := c.args.str("trigger_id"); id != "" {
		return id
	}
	return c.args.str("interactivity_pointer")
}

func (s *Server) viewsPush(c *apiCall) (reply, error) {
	v, err := s.readView(c.args.raw("view"), "modal")
	if err != nil {
		return nil, err
	}
	t, err := s.exchange(s.triggerArg(c))
	if err != nil {
		return nil, err
	}
	st := s.views.stack(t.user)
	if t.viewID == "" || st.top() == nil {
		return nil, fail("not_found") // pushing needs a modal to push onto
	}
	if err := s.push(st, v); err != nil {
		return nil, err
	}
	return reply{"view": v.copy()}, nil
}

func (s *Server) viewsUpdate(c *apiCall) (reply, error) {
	old := s.views.byID[c.args.str("view_id")]
	if old == nil {
		old = s.views.byExternal(c.args.str("external_id"))
	}
	if old == nil {
		return nil, fail("not_found")
	}
	v, err := s.readView(c.args.raw("view"), old.Type)
	if err != nil {
		return nil, err
	}
	if hash := c.args.str("hash"); hash != "" && hash != old.Hash {
		return nil, fail("hash_conflict")
	}
	s.replaceView(old, v)
	return reply{"view": old.copy()}, nil
}

// replaceView gives an open view new content; it stays the same view. What a
// person has typed stays where block and action are still there.
func (s *Server) replaceView(old, v *View) {
	v.ID, v.user, v.RootViewID, v.PreviousViewID = old.ID, old.user, old.RootViewID, old.PreviousViewID
	if v.ExternalID == "" {
		v.ExternalID = old.ExternalID
	}
	v.chosen = old.chosen
	s.views.settle(v)
	*old = *v
	s.viewChanged("view", old)
}

func (s *Server) viewsPublish(c *apiCall) (reply, error) {
	u := s.ws.user(c.args.str("user_id"))
	if u == nil {
		return nil, &apiError{Code: "invalid_arguments", Messages: []string{"[ERROR] user_not_found [json-pointer:/user_id]"}}
	}
	if !s.app.HomeTab {
		return nil, fail("not_enabled")
	}
	v, err := s.readView(c.args.raw("view"), "home")
	if err != nil {
		return nil, err
	}
	old := s.views.home(u.ID)
	if hash := c.args.str("hash"); hash != "" && (old == nil || hash != old.Hash) {
		return nil, fail("hash_conflict")
	}
	if old != nil {
		s.replaceView(old, v)
		return reply{"view": old.copy()}, nil
	}
	v.ID, v.user = slackID("V"), u.ID
	v.RootViewID = v.ID
	s.views.settle(v)
	s.views.byID[v.ID] = v
	s.views.homes = append(s.views.homes, v)
	s.viewChanged("view", v)
	return reply{"view": v.copy()}, nil
}

// copy is the view as it is now, for an answer that is written later.
func (v *View) copy() *View {
	out := *v
	out.State.Values = stateValues(v.Blocks, v.chosen)
	return &out
}

// Views are the views that a person has open: modals, the visible one first,
// then the Home tab.
func (s *Server) Views(user string) ([]View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ws.user(user) == nil {
		return nil, missing("user_not_found")
	}
	out := []View{}
	for _, v := range slices.Backward(s.views.stack(user).views) {
		out = append(out, *v.copy())
	}
	if home := s.views.home(user); home != nil {
		out = append(out, *home.copy())
	}
	return out, nil
}

// SubmitRequest is a person sending off a modal.
type SubmitRequest struct {
	User string `json:"user"`
	// Values is what was entered, by block and action: a string, or a list of
	// strings where several can be chosen. Options are named by their value.
	Values map[string]map[string]any `json:"values,omitempty"`
	Forge  map[string]any            `json:"forge,omitempty"`
}

// SubmitResult says how the app answered a submission.
type SubmitResult struct {
	Receipt
	ResponseAction string            `json:"response_action,omitempty"`
	Errors         map[string]string `json:"errors,omitempty"`
}

// openView finds a view that this person has open.
func (s *Server) openView(id, user string) (*View, *User, error) {
	v := s.views.byID[id]
	if v == nil {
		return nil, nil, missing("view_not_found")
	}
	u, err := s.actor(user)
	if err != nil {
		return nil, nil, err
	}
	if v.user != u.ID {
		return nil, nil, refuse("not_your_view", "the view is shown to somebody else")
	}
	return v, u, nil
}

// enter puts values into the view's fields.
func (v *View) enter(values map[string]map[string]any) error {
	for blockID, actions := range values {
		for actionID, value := range actions {
			e, found := findElement(v.Blocks, actionID, blockID)
			if !found {
				return missing("element_not_found")
			}
			state, err := e.chosen(value)
			if err != nil {
				return err
			}
			if v.chosen[blockID] == nil {
				v.chosen[blockID] = map[string]any{}
			}
			v.chosen[blockID][actionID] = state
		}
	}
	return nil
}

// hasInput reports whether an input block has this block_id: only there can an
// error be shown.
func (v *View) hasInput(blockID string) bool {
	return slices.ContainsFunc(elements(v.Blocks), func(e element) bool {
		return e.blockID == blockID && e.block["type"] == "input"
	})
}

// incomplete checks what Slack's client checks before it sends: inputs that
// are not optional have a value, texts have their length.
func (v *View) incomplete() map[string]string {
	errs := map[string]string{}
	values := stateValues(v.Blocks, v.chosen)
	for _, e := range elements(v.Blocks) {
		if e.block["type"] != "input" {
			continue
		}
		state, _ := values[e.blockID].(map[string]any)
		field, _ := state[e.actionID].(map[string]any)
		value := field[statefuls[e.kind].key]
		text, isText := value.(string)
		list, isList := value.([]any)
		if value == nil || isText && strings.TrimSpace(text) == "" || isList && len(list) == 0 {
			if e.block["optional"] != true {
				errs[e.blockID] = "Please complete this required field."
			}
			continue
		}
		if problem := e.unfit(text, list); problem != "" {
			errs[e.blockID] = problem
		}
	}
	return errs
}

// unfit says what Slack's client finds wrong with what was entered; it knows
// the element's own bounds. Empty: nothing.
func (e element) unfit(text string, list []any) string {
	if least, ok := number(e.fields["min_length"]); ok && len([]rune(text)) < least {
		return fmt.Sprintf("Enter at least %d characters.", least)
	}
	if most, ok := number(e.fields["max_length"]); ok && len([]rune(text)) > most {
		return fmt.Sprintf("Enter at most %d characters.", most)
	}
	if most, ok := number(e.fields["max_selected_items"]); ok && len(list) > most {
		return fmt.Sprintf("Choose at most %d.", most)
	}
	switch e.kind {
	case "number_input":
		return e.unfitNumber(text)
	case "email_text_input":
		if at := strings.Index(text, "@"); at < 1 || at == len(text)-1 || strings.ContainsAny(text, " \t\n") {
			return "Enter a valid email address."
		}
	case "url_text_input":
		if u, err := url.Parse(text); err != nil || u.Scheme == "" || u.Host == "" {
			return "Enter a valid URL."
		}
	}
	return ""
}

func (e element) unfitNumber(text string) string {
	n, ok := new(big.Rat).SetString(text)
	if !ok || !typedNumber.MatchString(text) {
		return "Enter a number."
	}
	if e.fields["is_decimal_allowed"] != true && !n.IsInt() {
		return "Enter a whole number."
	}
	bound := func(name string) *big.Rat {
		text, _ := e.fields[name].(string)
		b, ok := new(big.Rat).SetString(text)
		if !ok {
			return nil
		}
		return b
	}
	if least := bound("min_value"); least != nil && n.Cmp(least) < 0 {
		return "Enter a number of at least " + e.fields["min_value"].(string) + "."
	}
	if most := bound("max_value"); most != nil && n.Cmp(most) > 0 {
		return "Enter a number of at most " + e.fields["max_value"].(string) + "."
	}
	return ""
}

var typedNumber = regexp.MustCompile(`^-?[0-9]{1,50}(\.[0-9]{1,50})?$`)

func number(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return int(i), err == nil
}

// SubmitView sends a modal off and does what the app answers: close it, show
// errors in it, replace it, put another on top, or close them all.
func (s *Server) SubmitView(id string, req SubmitRequest) (SubmitResult, error) {
	d, errs, err := s.submit(id, req)
	if err != nil {
		return SubmitResult{}, err
	}
	if len(errs) > 0 { // the client itself refuses: nothing was sent
		return SubmitResult{ResponseAction: "errors", Errors: errs}, nil
	}
	receipt, answer := s.receipt(d)
	result := SubmitResult{Receipt: receipt}
	if !receipt.Acked {
		result.OK = false
		return result, nil
	}
	return s.submitted(id, result, answer)
}

func (s *Server) submit(id string, req SubmitRequest) (*delivery, map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, u, err := s.openView(id, req.User)
	if err != nil {
		return nil, nil, err
	}
	if v.Type != "modal" {
		return nil, nil, refuse("not_a_modal", "a Home tab can't be submitted")
	}
	if err := v.enter(req.Values); err != nil {
		return nil, nil, err
	}
	if errs := v.incomplete(); len(errs) > 0 {
		return nil, errs, nil
	}
	p := s.interactive("view_submission", u)
	p["trigger_id"] = s.newTrigger(u.ID, v.ID)
	p["view"] = v.copy()
	p["response_urls"] = []any{}
	return s.interact(mergePatch(p, req.Forge)), nil, nil
}

// submitted carries out the app's answer to a submission.
func (s *Server) submitted(id string, result SubmitResult, answer json.RawMessage) (SubmitResult, error) {
	var a struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
		View   json.RawMessage   `json:"view"`
	}
	if len(answer) > 0 && json.Unmarshal(answer, &a) != nil {
		return result, refuse("invalid_response", "the app's answer is no response to a submission")
	}
	result.ResponseAction, result.Errors = a.Action, a.Errors
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views.byID[id]
	if v == nil { // the app or the person closed it meanwhile
		return result, nil
	}
	st := s.views.stack(v.user)
	switch a.Action {
	case "":
		s.closeFrom(st, slices.Index(st.views, v))
	case "clear":
		s.closeFrom(st, 0)
	case "errors":
		if len(a.Errors) == 0 {
			return result, refuse("invalid_response", "response_action errors without errors")
		}
		for id := range a.Errors {
			if !v.hasInput(id) {
				return result, refuse("invalid_response", "response_action errors for "+printable(id)+", which is no input block of the view")
			}
		}
	case "update", "push":
		next, err := s.readView(a.View, "modal")
		if err != nil {
			return result, refuse("invalid_response", err.Error())
		}
		if a.Action == "update" {
			s.replaceView(v, next)
		} else if err := s.push(st, next); err != nil {
			return result, refuse("invalid_response", err.Error())
		}
	default:
		return result, refuse("invalid_response", "unknown response_action "+a.Action)
	}
	return result, nil
}

// closeFrom closes the modals from this position to the top.
func (s *Server) closeFrom(st *viewStack, from int) {
	if from < 0 {
		return
	}
	closed := slices.Clone(st.views[from:])
	s.views.drop(st, from)
	for _, v := range closed {
		s.viewChanged("view_closed", v)
	}
}

// CloseView is a person closing a modal with its X or its close button. The
// app hears of it only if the view asked for that.
func (s *Server) CloseView(id, user string) (Receipt, error) {
	d, err := s.closeView(id, user)
	if err != nil || d == nil {
		return Receipt{OK: err == nil}, err
	}
	receipt, _ := s.receipt(d)
	return receipt, nil
}

func (s *Server) closeView(id, user string) (*delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, u, err := s.openView(id, user)
	if err != nil {
		return nil, err
	}
	st := s.views.stack(v.user)
	at := slices.Index(st.views, v)
	if at < 0 {
		return nil, refuse("not_a_modal", "a Home tab can't be closed")
	}
	from := at
	if v.ClearOnClose {
		from = 0
	}
	s.closeFrom(st, from)
	if !v.NotifyOnClose {
		return nil, nil
	}
	shown := v.copy()
	shown.State.Values = map[string]any{} // what was typed is not told
	p := s.interactive("view_closed", u)
	p["view"], p["is_cleared"] = shown, v.ClearOnClose
	return s.interact(p), nil
}

// ViewAction is a person using an element of a view.
func (s *Server) ViewAction(id string, req ActionRequest) (Receipt, error) {
	d, err := s.viewAction(id, req)
	if err != nil {
		return Receipt{}, err
	}
	receipt, _ := s.receipt(d)
	return receipt, nil
}

func (s *Server) viewAction(id string, req ActionRequest) (*delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, u, err := s.openView(id, req.User)
	if err != nil {
		return nil, err
	}
	action, err := s.action(v.Blocks, req)
	if err != nil {
		return nil, err
	}
	e, found := findElement(v.Blocks, req.ActionID, req.BlockID)
	if _, ok := statefuls[e.kind]; found && ok && e.kind != "overflow" {
		if err := v.enter(map[string]map[string]any{e.blockID: {e.actionID: req.Value}}); err != nil {
			return nil, err
		}
	}
	modal := ""
	if v.Type == "modal" {
		modal = v.ID
	}
	p := s.interactive("block_actions", u)
	p["container"] = map[string]any{"type": "view", "view_id": v.ID}
	p["trigger_id"] = s.newTrigger(u.ID, modal)
	p["view"] = v.copy()
	p["actions"] = []any{action}
	return s.interact(mergePatch(p, req.Forge)), nil
}
