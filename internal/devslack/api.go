package devslack

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply is the JSON object of an answer, without its "ok".
type reply map[string]any

// apiError is an answer with ok:false.
type apiError struct {
	Code     string
	Messages []string // response_metadata.messages: where exactly the error is
	Extra    reply
	// Status and RetryAfter (seconds) make it an HTTP error; Slack itself
	// answers everything but rate limits with 200.
	Status     int
	RetryAfter int
}

func (e *apiError) Error() string { return "slack: " + e.Code }

func fail(code string) error { return &apiError{Code: code} }

// apiCall is one request to a Web API method.
type apiCall struct {
	method string
	args   args
	origin string // scheme and host by which the client reached us
	http   *http.Request

	granted  []string // the scopes of its token; nil until the token is accepted
	accepted []string // those of which the method needs one
}

// tokenKind says which kind of token a method takes.
type tokenKind int

const (
	botToken tokenKind = iota
	appToken
	noToken
)

// method is one entry of the Web API. run is called with Server.mu held.
type method struct {
	token  tokenKind
	tier   tier
	scopes []string // one of them is needed; methods whose scope depends on the channel check it themselves
	run    func(*Server, *apiCall) (reply, error)
}

var methods = map[string]method{
	"api.test":              {noToken, tierSpecial, nil, (*Server).apiTest},
	"auth.test":             {botToken, tierSpecial, nil, (*Server).authTest},
	"apps.connections.open": {appToken, tier3, []string{connectionsWrite}, (*Server).connectionsOpen},
	"bots.info":             {botToken, tier3, []string{"users:read"}, (*Server).botsInfo},
	"team.info":             {botToken, tier3, []string{"team:read"}, (*Server).teamInfo},

	"chat.postMessage":   {botToken, tierPost, []string{"chat:write"}, (*Server).chatPostMessage},
	"chat.postEphemeral": {botToken, tier4, []string{"chat:write"}, (*Server).chatPostEphemeral},
	"chat.update":        {botToken, tier3, []string{"chat:write"}, (*Server).chatUpdate},
	"chat.delete":        {botToken, tier3, []string{"chat:write"}, (*Server).chatDelete},
	"chat.getPermalink":  {botToken, tierSpecial, nil, (*Server).chatGetPermalink},

	"conversations.history": {botToken, tier3, nil, (*Server).conversationsHistory},
	"conversations.replies": {botToken, tier3, nil, (*Server).conversationsReplies},
	"conversations.info":    {botToken, tier3, nil, (*Server).conversationsInfo},
	"conversations.list":    {botToken, tier2, nil, (*Server).conversationsList},
	"conversations.members": {botToken, tier4, nil, (*Server).conversationsMembers},
	"conversations.open":    {botToken, tier3, []string{"im:write"}, (*Server).conversationsOpen},
	"conversations.join":    {botToken, tier3, []string{"channels:join"}, (*Server).conversationsJoin},

	"users.info":            {botToken, tier4, []string{"users:read"}, (*Server).usersInfo},
	"users.list":            {botToken, tier2, []string{"users:read"}, (*Server).usersList},
	"usergroups.list":       {botToken, tier2, []string{"usergroups:read"}, (*Server).usergroupsList},
	"usergroups.users.list": {botToken, tier2, []string{"usergroups:read"}, (*Server).usergroupsUsersList},

	"views.open":    {botToken, tier4, nil, (*Server).viewsOpen},
	"views.push":    {botToken, tier4, nil, (*Server).viewsPush},
	"views.update":  {botToken, tier4, nil, (*Server).viewsUpdate},
	"views.publish": {botToken, tier4, nil, (*Server).viewsPublish},

	"reactions.add":    {botToken, tier3, []string{"reactions:write"}, (*Server).reactionsAdd},
	"reactions.remove": {botToken, tier2, []string{"reactions:write"}, (*Server).reactionsRemove},

	"files.getUploadURLExternal":   {botToken, tier4, []string{"files:write"}, (*Server).filesGetUploadURL},
	"files.completeUploadExternal": {botToken, tier4, []string{"files:write"}, (*Server).filesCompleteUpload},
	"files.info":                   {botToken, tier4, []string{"files:read"}, (*Server).filesInfo},

	"assistant.threads.setStatus":           {botToken, tierSpecial, []string{"chat:write", "assistant:write"}, (*Server).assistantSetStatus},
	"assistant.threads.setTitle":            {botToken, tier4, []string{"assistant:write"}, (*Server).assistantSetTitle},
	"assistant.threads.setSuggestedPrompts": {botToken, tier4, []string{"assistant:write"}, (*Server).assistantSetPrompts},
	"agents.sessions.setStatus":             {botToken, tier3, []string{"chat:write"}, (*Server).agentSessionSetStatus},
	"agents.sessions.rename":                {botToken, tier3, []string{"chat:write"}, (*Server).agentSessionRename},
}

// connectionsWrite is the one scope of the app-level token.
const connectionsWrite = "connections:write"

// accepts lists the scopes of which the method needs one. Where the kind of
// channel decides, it is one of the family.
func (m method) accepts(name string) []string {
	family := ""
	switch name {
	case "conversations.history", "conversations.replies":
		family = "history"
	case "conversations.info", "conversations.list", "conversations.members":
		family = "read"
	default:
		return m.scopes
	}
	return []string{"channels:" + family, "groups:" + family, "im:" + family}
}

// serveAPI answers one request to the Web API.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	c := &apiCall{method: r.PathValue("method"), origin: originOf(r), http: r}
	var err error
	c.args, err = readArgs(r)
	var answer reply
	effect := (*Fault)(nil)
	if err == nil {
		effect = s.takeFault(c)
		answer, err = s.answer(c, effect)
	}
	status, body, retryAfter := s.envelope(answer, err)
	if effect != nil {
		inTime := s.pause(r.Context(), time.Duration(effect.DelayMS)*time.Millisecond)
		if effect.DropResponse || !inTime {
			s.calls.add(Call{Kind: "api", Name: c.method, Request: c.args.logged(), Response: encode(body)})
			dropConnection(w)
			return
		}
	}
	s.calls.add(Call{Kind: "api", Name: c.method, Request: c.args.logged(), Response: encode(body), Status: status})
	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if c.granted != nil { // how tools find out what a token may do, without trying
		w.Header().Set("X-OAuth-Scopes", strings.Join(c.granted, ","))
		if len(c.accepted) > 0 {
			w.Header().Set("X-Accepted-OAuth-Scopes", strings.Join(c.accepted, ","))
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Slack-Req-Id", hexID(16))
	w.WriteHeader(status)
	w.Write(encode(body)) // a client that has gone away is not our trouble
}

// answer runs the method, unless a fault or a check comes first.
func (s *Server) answer(c *apiCall, effect *Fault) (reply, error) {
	if effect != nil && effect.refuses() {
		return nil, effect.apiError()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := methods[c.method]
	if !known {
		return nil, &apiError{Code: "unknown_method", Extra: reply{"req_method": c.method}}
	}
	if err := s.authenticate(c, m.token); err != nil {
		return nil, err
	}
	c.accepted = m.accepts(c.method)
	if wait := s.limited(c, m.tier); wait > 0 {
		return nil, &apiError{Code: "ratelimited", Status: http.StatusTooManyRequests, RetryAfter: wait}
	}
	if len(m.scopes) > 0 && m.token == botToken {
		if err := s.app.needs(m.scopes...); err != nil {
			return nil, err
		}
	}
	return m.run(s, c)
}

// envelope makes the body of an answer. An error that is not Slack's own (the
// state could not be written) is internal_error, as it would be there.
func (s *Server) envelope(answer reply, err error) (status int, body reply, retryAfter int) {
	if err == nil {
		body = reply{"ok": true}
		for key, value := range answer {
			body[key] = value
		}
		return http.StatusOK, body, 0
	}
	var slackErr *apiError
	if !errors.As(err, &slackErr) {
		s.log.Error("request failed", "error", err)
		slackErr = &apiError{Code: "internal_error"}
	}
	body = reply{"ok": false, "error": slackErr.Code}
	for key, value := range slackErr.Extra {
		body[key] = value
	}
	if len(slackErr.Messages) > 0 {
		body["response_metadata"] = reply{"messages": slackErr.Messages}
	}
	status = slackErr.Status
	if status == 0 {
		status = http.StatusOK
	}
	return status, body, slackErr.RetryAfter
}

// authenticate finds the token, in the Authorization header or among the
// arguments, and compares it with what the method takes.
func (s *Server) authenticate(c *apiCall, want tokenKind) error {
	if want == noToken {
		return nil
	}
	token, bearer := strings.CutPrefix(c.http.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		token = c.args.str("token")
	}
	switch token = strings.TrimSpace(token); {
	case token == "":
		return fail("not_authed")
	case token == s.ws.App.BotToken:
		if want != botToken {
			return fail("not_allowed_token_type")
		}
		c.granted = s.app.BotScopes
	case token == s.ws.App.AppToken:
		if want != appToken {
			return fail("not_allowed_token_type")
		}
		if !bearer { // Slack takes this token in the header alone
			return fail("not_authed")
		}
		c.granted = []string{connectionsWrite}
	default:
		return fail("invalid_auth")
	}
	return nil
}

// originOf is the scheme and host by which a client reached us.
func originOf(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// dropConnection ends the connection in the middle of a request: the client
// can't know whether its call was carried out.
func dropConnection(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	conn.Close()
}

func (s *Server) apiTest(c *apiCall) (reply, error) {
	if code := c.args.str("error"); code != "" {
		return nil, &apiError{Code: code, Extra: reply{"args": c.args}}
	}
	return reply{"args": c.args}, nil
}

func (s *Server) authTest(c *apiCall) (reply, error) {
	app := s.ws.App
	return reply{"url": c.origin + "/", "team": s.ws.Team.Name, "user": app.Name, "team_id": s.ws.Team.ID,
		"user_id": app.BotUserID, "bot_id": app.BotID, "app_id": app.ID, "app_name": app.Name,
		"is_enterprise_install": false}, nil
}

func (s *Server) teamInfo(c *apiCall) (reply, error) {
	if id := c.args.str("team"); id != "" && id != s.ws.Team.ID {
		return nil, fail("team_not_found")
	}
	return reply{"team": reply{"id": s.ws.Team.ID, "name": s.ws.Team.Name, "domain": s.ws.Team.Domain,
		"url": c.origin + "/", "email_domain": "", "icon": reply{"image_default": true}}}, nil
}

func (s *Server) botsInfo(c *apiCall) (reply, error) {
	id := c.args.str("bot")
	for _, u := range s.ws.Users {
		if u.BotID != "" && u.BotID == id {
			bot := reply{"id": u.BotID, "deleted": false, "name": u.RealName, "updated": 0,
				"app_id": u.AppID, "user_id": u.ID, "icons": reply{}, "team_id": u.TeamID}
			if u.Workflow { // it is no user
				delete(bot, "user_id")
			}
			return reply{"bot": bot}, nil
		}
	}
	return nil, fail("bot_not_found")
}
