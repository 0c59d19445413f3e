package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"approvalbot/internal/approvals"
)

const (
	defaultAPIURL = "https://slack.com/api/"

	// callLimit bounds one call of the Web API. A post that takes longer is taken for lost and looked for.
	callLimit = 10 * time.Second

	// handshakeLimit bounds the opening of the socket.
	handshakeLimit = 15 * time.Second

	// socketWriteBuffer keeps an acknowledgement in one WebSocket frame, whatever it carries.
	socketWriteBuffer = 32 << 10
)

// A ClientConfig says how to reach a workspace.
type ClientConfig struct {
	BotToken string // xoxb-…, speaks for the bot
	AppToken string // xapp-…, opens the socket
	APIURL   string // empty: Slack itself

	HTTPClient *http.Client      // nil: the default one
	Dialer     *websocket.Dialer // nil: the default one
	Logger     *slog.Logger      // nil: silent
	Observer   Observer          // nil: nobody counts
}

// A Client is one installation of the app in one workspace. It says who we are there and carries all calls.
type Client struct {
	Team     string   // T…
	TeamName string   //
	URL      string   // of the workspace
	BotUser  string   // U…, as whom the bot writes
	BotName  string   //
	BotID    string   // B…, marks the bot's messages
	AppID    string   // A…
	Scopes   []string // what the bot token may do, as Slack lists it; nil where Slack didn't say

	base      string                 // of the Web API, with a slash at the end
	helloApp  atomic.Pointer[string] // the app that the socket is of; AppID may be unknown until then
	api       *slack.Client
	gate      *gate
	dialer    *websocket.Dialer
	directory *directory
	log       *slog.Logger
	observer  Observer
}

// A TokenError says that Slack doesn't take a token, or that there is no Slack at the address, and what to do about it.
type TokenError struct {
	Setting string // SLACK_BOT_TOKEN, SLACK_APP_TOKEN or SLACK_API_URL
	Code    string // Slack's; empty where we saw it ourselves
	Advice  string
}

func (e *TokenError) Error() string {
	if e.Code == "" {
		return e.Setting + " " + e.Advice
	}
	return fmt.Sprintf("Slack refuses %s (%s): %s", e.Setting, e.Code, e.Advice)
}

const (
	botSetting = "SLACK_BOT_TOKEN"
	appSetting = "SLACK_APP_TOKEN"
)

// Connect finds out who the bot is. It opens no socket: [UI.Run] does.
func Connect(ctx context.Context, cfg ClientConfig) (*Client, error) {
	if err := checkTokens(cfg.BotToken, cfg.AppToken); err != nil {
		return nil, err
	}
	base, err := apiURL(cfg.APIURL)
	if err != nil {
		return nil, err
	}
	c := &Client{base: base, gate: newGate(), dialer: cfg.Dialer, log: cfg.Logger, observer: cfg.Observer}
	if c.observer == nil {
		c.observer = nobody{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.dialer == nil {
		c.dialer = &websocket.Dialer{
			Proxy: http.ProxyFromEnvironment, HandshakeTimeout: handshakeLimit, WriteBufferSize: socketWriteBuffer,
		}
	}
	c.api = slack.New(cfg.BotToken, slack.OptionAppLevelToken(cfg.AppToken), slack.OptionAPIURL(base),
		slack.OptionHTTPClient(newCaller(cfg.HTTPClient, base, c.gate, c.observer)))
	c.directory = newDirectory(c)
	if err := c.identify(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Directory answers who people, channels and groups of the workspace are.
func (c *Client) Directory() approvals.Directory { return c.directory }

// appID is our app's id; empty while it isn't known.
func (c *Client) appID() string {
	if c.AppID != "" {
		return c.AppID
	}
	if id := c.helloApp.Load(); id != nil {
		return *id
	}
	return ""
}

// CheckAppToken asks Slack for a socket, without opening it.
func (c *Client) CheckAppToken(ctx context.Context) error {
	_, _, err := c.api.StartSocketModeContext(ctx)
	return socketRefusal(err)
}

// identify fills in who we are.
func (c *Client) identify(ctx context.Context) error {
	who, err := c.api.AuthTestContext(ctx)
	if wrong := wrongURL(c.base, err); wrong != nil {
		return wrong
	}
	if err != nil {
		return botRefusal(err)
	}
	if who.BotID == "" {
		return &TokenError{Setting: botSetting, Advice: "belongs to a person, not to a bot. Use the Bot User OAuth Token " +
			"(xoxb-…) from the app's page \"OAuth & Permissions\"."}
	}
	c.Team, c.TeamName, c.URL = who.TeamID, who.Team, who.URL
	c.BotUser, c.BotName, c.BotID = who.UserID, who.User, who.BotID
	c.Scopes = listed(who.Header.Get("X-OAuth-Scopes"))
	// The app's id is on the socket's hello too; asking for it here lets doctor see tokens of two different apps.
	bot, err := c.api.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: c.BotID})
	if err == nil {
		c.AppID = bot.AppID
	}
	return nil
}

func listed(header string) []string {
	var out []string
	for word := range strings.SplitSeq(header, ",") {
		if word = strings.TrimSpace(word); word != "" {
			out = append(out, word)
		}
	}
	return out
}

// checkTokens finds what can be seen without asking Slack: the two tokens exchanged, or something else altogether.
func checkTokens(bot, app string) error {
	for _, t := range []struct{ setting, token, want, other, where string }{
		{botSetting, bot, "xoxb-", "xapp-", `the app's page "OAuth & Permissions"`},
		{appSetting, app, "xapp-", "xoxb-", `the app's page "Basic Information", under "App-Level Tokens", with the scope connections:write`},
	} {
		switch {
		case t.token == "":
			return &TokenError{Setting: t.setting, Advice: "is not set. It starts with " + t.want + " and is found on " + t.where + "."}
		case strings.HasPrefix(t.token, t.other):
			return &TokenError{Setting: t.setting, Advice: "holds the other token (" + t.other + "…): SLACK_BOT_TOKEN and " +
				"SLACK_APP_TOKEN look exchanged."}
		case !strings.HasPrefix(t.token, t.want):
			return &TokenError{Setting: t.setting, Advice: "doesn't start with " + t.want + ". The right one is found on " + t.where + "."}
		}
	}
	return nil
}

// apiURL makes sure of the slash at the end, without which slack-go glues method names to the last word.
func apiURL(s string) (string, error) {
	if s == "" {
		return defaultAPIURL, nil
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return "", fmt.Errorf("SLACK_API_URL %q is not an http(s) URL such as %s", s, defaultAPIURL)
	}
	return strings.TrimSuffix(s, "/") + "/", nil
}

// wrongURL recognises an answer that no Web API gives: the address is one of something else, or lacks its path.
func wrongURL(base string, err error) error {
	how := ""
	var syntax *json.SyntaxError
	if e, ok := errors.AsType[slack.StatusCodeError](err); ok && e.Code < http.StatusInternalServerError && e.Code != http.StatusTooManyRequests {
		how = fmt.Sprintf("it answers HTTP %d", e.Code)
	} else if errors.As(err, &syntax) {
		how = "it doesn't answer JSON"
	}
	if how == "" {
		return nil
	}
	return &TokenError{Setting: "SLACK_API_URL", Advice: fmt.Sprintf("(%s) is not the address of a Web API: %s to auth.test. "+
		"Slack's is %s, a local Slack's is printed as \"api url\" and ends in /api/.", redactedURL(base), how, defaultAPIURL)}
}

// owns tells whether an address is Slack's: of the host that the Web API is on, or of one below it (hooks.slack.com). What
// people are told privately goes nowhere else, whatever an envelope names.
func (c *Client) owns(address string) bool {
	base, err := url.Parse(c.base)
	if err != nil || base.Host == "" {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.Scheme == base.Scheme && (u.Host == base.Host || strings.HasSuffix(u.Host, "."+base.Host))
}

// redactedURL is a URL without a password that may be in it.
func redactedURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "?"
	}
	return u.Redacted()
}

// botRefusal turns the error of a call with the bot token into a sentence that says what to do.
func botRefusal(err error) error {
	code := errorCode(err)
	if advice := tokenAdvice(botSetting, code); advice != "" {
		return &TokenError{Setting: botSetting, Code: code, Advice: advice}
	}
	return fmt.Errorf("Slack can't be reached (auth.test): %w", err)
}

// socketRefusal does the same for apps.connections.open. What isn't about the token stays as it is.
func socketRefusal(err error) error {
	code := errorCode(err)
	if advice := tokenAdvice(appSetting, code); advice != "" {
		return &TokenError{Setting: appSetting, Code: code, Advice: advice}
	}
	if e, ok := errors.AsType[slack.StatusCodeError](err); ok && e.Code == http.StatusNotFound {
		return &TokenError{Setting: "SLACK_API_URL", Advice: "names something that doesn't know " + openMethod + "."}
	}
	return err
}

// tokenAdvice is what to do about a token that Slack refuses with a code; empty if the code isn't about the token.
func tokenAdvice(setting, code string) string {
	where := `install the app in the workspace again and copy the new token from "OAuth & Permissions".`
	if setting == appSetting {
		where = `make a new one on "Basic Information" under "App-Level Tokens", with the scope connections:write.`
	}
	switch code {
	case "invalid_auth", "not_authed":
		return "it is not a token of this workspace; " + where
	case "token_revoked", "token_expired":
		return "it was revoked; " + where
	case "account_inactive":
		return "the bot's account was removed or the app uninstalled; " + where
	case "not_allowed_token_type":
		return "it is the wrong kind of token; " + where
	case "missing_scope":
		return "it lacks a permission; " + where
	case "socket_mode_disabled", "app_not_in_socket_mode":
		return `switch Socket Mode on, on the app's page "Socket Mode".`
	case "org_login_required", "team_access_not_granted", "ekm_access_denied":
		return "the workspace doesn't let the app in; ask an administrator of the workspace."
	}
	return ""
}

// errorCode is Slack's word for what went wrong; empty if Slack said nothing that could be read.
func errorCode(err error) string {
	if e, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return e.Err
	}
	return ""
}

// A caller carries the calls of the Web API.
type caller struct {
	next     *http.Client
	files    *http.Client // the same for files on their way, which take as long as their context lets them
	base     string       // of the Web API; what isn't below it is a file on its way
	gate     *gate
	observer Observer
}

func newCaller(next *http.Client, base string, g *gate, o Observer) *caller {
	c := http.Client{}
	if next != nil {
		c = *next
	}
	files := c
	if c.Timeout == 0 {
		c.Timeout, files.Timeout = callLimit, downloadLimit
	}
	return &caller{next: &c, files: &files, base: base, gate: g, observer: o}
}

// openMethod is the call that every new socket begins with.
const openMethod = "apps.connections.open"

// Do makes a call. Connections are opened no faster than the gate lets them, and a "too many requests" that doesn't say
// for how long still arrives as one: slack-go knows it by the header alone.
func (c *caller) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/"+openMethod) {
		if err := c.gate.wait(r.Context()); err != nil {
			return nil, err
		}
	}
	next, method := c.next, c.method(r.URL)
	if method == upload {
		next = c.files
	}
	began := time.Now()
	resp, err := next.Do(r)
	result := outcome(r.Context(), resp, err)
	c.observer.Called(method, result, time.Since(began))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || n < 0 {
			resp.Header.Set("Retry-After", "0")
		}
	}
	return resp, nil
}

// CheckBot tells why another bot is none that could write to us.
func (c *Client) CheckBot(ctx context.Context, id string) error {
	b, err := c.api.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: id})
	switch {
	case errorCode(err) == "bot_not_found":
		return fmt.Errorf("there is no bot with the id %s: the log names the id of a bot that mentions approvalbot", id)
	case err != nil:
		return fmt.Errorf("the bot %s can't be looked up: %w", id, err)
	case b.Deleted:
		return fmt.Errorf("the bot %s (%s) was removed", id, b.Name)
	}
	return nil
}
