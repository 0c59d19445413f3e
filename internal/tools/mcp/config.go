package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of a configuration, and of a call where it says nothing.
const (
	maxConfig   = 1 << 20
	maxServers  = 64
	callTimeout = 120 * time.Second
	leastLimit  = time.Second
	mostLimit   = time.Hour
)

// A Config is the servers that are to be used, by name, in the order of their names.
type Config struct {
	Servers []Server
	secrets []string
}

// Kind is how a server is talked to.
type Kind string

// The kinds of servers.
const (
	Stdio Kind = "stdio" // a program: its standard input and output
	HTTP  Kind = "http"  // an address: streamable HTTP
	SSE   Kind = "sse"   // an address: HTTP with server-sent events, which streamable HTTP came after
)

// A Server is one entry of the configuration, checked and with its variables filled in.
type Server struct {
	Name string
	Kind Kind

	Command string // a program: its path, or its name in the PATH
	Args    []string
	Env     map[string]string
	Cwd     string // absolute

	URL     string
	Headers map[string]string

	Timeout  time.Duration // of a call
	Trust    bool          // its hints count
	Tools    []string      // the only tools to be offered, by their own names; nil: all
	Disabled bool
}

// credentials are the names of what the server is given to show to others: environment variables and headers, never their
// values.
func (s Server) credentials() []string {
	return append(slices.Sorted(maps.Keys(s.Env)), slices.Sorted(maps.Keys(s.Headers))...)
}

// Place is where the server is, for people: a program, or an address without what may be a secret in it. That is all behind
// its path, like arguments of a program, and each part of the path that isn't clearly a word or a version.
func (s Server) Place() string {
	if s.Kind == Stdio {
		return s.Command
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return "?" // can't be: it was parsed before
	}
	parts := strings.Split(u.EscapedPath(), "/")
	for i, part := range parts {
		if !plainPart.MatchString(part) {
			parts[i] = "…"
		}
	}
	return s.origin() + strings.TrimSuffix(strings.Join(parts, "/"), "/")
}

// plainPart matches a part of a path that is no secret: words of letters, each with two digits at most.
var plainPart = regexp.MustCompile(`^(?:[A-Za-z]{0,16}[0-9]{0,2}(?:[._-]|$)){0,4}$`)

// origin is scheme and host of an address.
func (s Server) origin() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "?"
	}
	return u.Scheme + "://" + u.Host
}

// Secrets are the values in the configuration that look like secrets, for the redactor.
func (c Config) Secrets() []string { return c.secrets }

// ReadConfig reads the file, which has the form that other MCP clients use. lookup finds the variables that values of env
// and headers refer to as ${NAME}. An error says what is wrong with which server and what would be right.
func ReadConfig(file string, lookup func(name string) (string, bool)) (Config, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return Config{}, err
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return Config{}, err
	case !info.Mode().IsRegular():
		return Config{}, fmt.Errorf("%s is not a regular file", file)
	case info.Size() > maxConfig:
		return Config{}, fmt.Errorf("%s has %d bytes; %d is the most", file, info.Size(), maxConfig)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	c, err := parseConfig(text, filepath.Dir(file), lookup)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// parseConfig reads the text of a configuration that stands in dir.
func parseConfig(text []byte, dir string, lookup func(string) (string, bool)) (Config, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if err := oneJSON(text); err != nil {
		return Config{}, err
	}
	top, err := object(text, `{"mcpServers":{…}}`)
	if err != nil {
		return Config{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(top)) {
		if name != "mcpServers" && name != "$schema" {
			return Config{}, fmt.Errorf("%q is not known here: the file is %s", name, `{"mcpServers":{"NAME":{…}}}`)
		}
	}
	if top["mcpServers"] == nil {
		return Config{}, errors.New(`"mcpServers" is missing: the file is {"mcpServers":{"NAME":{…}}}`)
	}
	servers, err := object(top["mcpServers"], "an object of servers by name")
	if err != nil {
		return Config{}, fmt.Errorf("mcpServers: %w", err)
	}
	if len(servers) > maxServers {
		return Config{}, fmt.Errorf("mcpServers: there are %d servers; %d is the most", len(servers), maxServers)
	}
	var c Config
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		e := entry{dir: dir, lookup: lookup}
		s, err := e.server(name, servers[name])
		if err != nil {
			wrong = append(wrong, fmt.Errorf("mcpServers: %q: %w", name, err))
			continue
		}
		c.Servers, c.secrets = append(c.Servers, s), append(c.secrets, e.secrets...)
	}
	return c, errors.Join(wrong...)
}

// oneJSON checks that the text is one JSON value without duplicate members, and says where it isn't. It quotes nothing:
// there may be secrets.
func oneJSON(text []byte) error {
	if jsontext.Value(text).IsValid() {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	_, err := dec.ReadValue()
	if err == nil {
		return errors.New("there is more than one JSON value in it")
	}
	at := int(dec.InputOffset())
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		at = int(syntax.ByteOffset)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("line %d: a name stands twice in one object", 1+bytes.Count(text[:min(at, len(text))], []byte("\n")))
		}
	}
	return fmt.Errorf("line %d: it is not JSON (comments and commas before a closing bracket are not allowed)", 1+bytes.Count(text[:min(at, len(text))], []byte("\n")))
}

func object(text []byte, want string) (map[string]json.RawMessage, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(text, &o); err != nil || o == nil {
		return nil, fmt.Errorf("it has to be %s", want)
	}
	return o, nil
}

// An entry is one server of the file on its way into the configuration.
type entry struct {
	dir     string
	lookup  func(string) (string, bool)
	secrets []string
}

// fields are the members of a server that are known, and what they are.
const fields = "command, args, env, cwd (of a program); type, url, headers (of an address); trust, tools, timeout, disabled"

// refused are members that other clients know and that would look as if they did something here.
var refused = map[string]string{
	"autoApprove":   "autoApprove has no effect here, so it is refused: what needs no approval is for the policy to say; trust: true lets the server's read-only hints count",
	"alwaysAllow":   "alwaysAllow has no effect here, so it is refused: what needs no approval is for the policy to say; trust: true lets the server's read-only hints count",
	"envFile":       "envFile is not read: name the variables in env, as \"NAME\": \"${NAME}\"",
	"headersHelper": "headersHelper is not run: name the headers in headers, as \"Authorization\": \"Bearer ${TOKEN}\"",
}

// A server can't start its name like an option or hide in it; everything else is made fit.
const maxServerName = 64

func (e *entry) server(name string, raw json.RawMessage) (Server, error) {
	s := Server{Name: name, Timeout: callTimeout}
	if name == "" || len([]rune(name)) > maxServerName || !printableName(name) {
		return s, fmt.Errorf("a server's name has to be 1 to %d characters that can be seen", maxServerName)
	}
	members, err := object(raw, "an object with the members "+fields)
	if err != nil {
		return s, err
	}
	var kind, timeout string
	into := map[string]any{
		"type": &kind, "command": &s.Command, "args": &s.Args, "env": &s.Env, "cwd": &s.Cwd, "url": &s.URL, "headers": &s.Headers,
		"timeout": &timeout, "trust": &s.Trust, "tools": &s.Tools, "disabled": &s.Disabled,
	}
	for _, member := range slices.Sorted(maps.Keys(members)) {
		if why := refused[member]; why != "" {
			return s, errors.New(why)
		}
		target := into[member]
		if target == nil {
			return s, fmt.Errorf("%q is not known: there are %s", member, fields)
		}
		if err := json.Unmarshal(members[member], target); err != nil || string(members[member]) == "null" {
			return s, fmt.Errorf("%s has to be %s", member, wanted(member))
		}
	}
	if s.Kind, err = kindOf(kind, s); err != nil {
		return s, err
	}
	if err := s.limits(timeout, members["tools"] != nil); err != nil {
		return s, err
	}
	if s.Disabled { // it isn't used, so what it refers to need not be there
		return s, nil
	}
	if s.Kind == Stdio {
		return s, e.program(&s, members)
	}
	return s, e.address(&s, members)
}

// wanted says what the value of a member is.
func wanted(member string) string {
	switch member {
	case "args", "tools":
		return "a list of strings"
	case "env", "headers":
		return "an object of strings"
	case "trust", "disabled":
		return "true or false"
	case "timeout":
		return `a duration as "90s" or "5m", in quotes`
	}
	return "a string"
}

// kindOf tells a program from an address, also where the type isn't written.
func kindOf(kind string, s Server) (Kind, error) {
	switch strings.ToLower(kind) {
	case "":
		switch {
		case s.Command != "" && s.URL != "":
			return "", errors.New("it has both command and url: a server is a program or an address")
		case s.Command != "":
			return Stdio, nil
		case s.URL != "":
			return HTTP, nil
		}
		return "", errors.New("command (of a program) or url (of an address) is missing")
	case "stdio":
		return Stdio, nil
	case "http", "streamable-http", "streamablehttp":
		return HTTP, nil
	case "sse":
		return SSE, nil
	}
	return "", fmt.Errorf("type %q is not known: there are stdio, http and sse", kind)
}

func (s *Server) limits(timeout string, named bool) error {
	if timeout != "" {
		d, err := time.ParseDuration(timeout)
		if err != nil || d < leastLimit || d > mostLimit {
			return fmt.Errorf("timeout %q has to be a duration between 1s and 1h, as \"90s\"", timeout)
		}
		s.Timeout = d
	}
	if named && len(s.Tools) == 0 {
		return errors.New(`tools names no tool, so none could be used: leave it out for all of them, or say "disabled": true`)
	}
	return nil
}

func (e *entry) program(s *Server, members map[string]json.RawMessage) error {
	for _, m := range []string{"url", "headers"} {
		if members[m] != nil {
			return fmt.Errorf("%s is a member of an address; this is a program (type stdio)", m)
		}
	}
	if s.Command == "" {
		return errors.New("command is missing: the program to start")
	}
	for _, text := range append([]string{s.Command, s.Cwd}, s.Args...) {
		switch {
		case strings.Contains(text, "${"):
			return errors.New("${NAME} is filled in only in the values of env and headers: give the program the variable in env")
		case strings.ContainsRune(text, 0):
			return errors.New("a NUL character can't be in command, args or cwd")
		}
	}
	// Not the workspace: what the agent writes there would become a part of the server (node_modules, .npmrc).
	if s.Cwd == "" {
		s.Cwd = e.dir
	}
	if !filepath.IsAbs(s.Cwd) {
		s.Cwd = filepath.Join(e.dir, s.Cwd)
	}
	if !filepath.IsAbs(s.Command) && strings.ContainsRune(s.Command, filepath.Separator) {
		s.Command = filepath.Join(s.Cwd, s.Command)
	}
	e.argSecrets(s.Args)
	var err error
	s.Env, err = e.expandAll("env", s.Env)
	return err
}

func (e *entry) address(s *Server, members map[string]json.RawMessage) error {
	for _, m := range []string{"command", "args", "env", "cwd"} {
		if members[m] != nil {
			return fmt.Errorf("%s is a member of a program; this is an address (type %s)", m, s.Kind)
		}
	}
	if strings.Contains(s.URL, "${") {
		return errors.New("${NAME} is filled in only in the values of env and headers, not in url")
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil: // its text would quote the address
		return errors.New("url can't be read: it has to be as https://HOST/PATH")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("url has to be as https://HOST/PATH")
	case u.User != nil:
		return errors.New("url holds a user or password: put it into headers, as \"Authorization\": \"Basic …\"")
	case u.Fragment != "":
		return errors.New("url has a fragment (#…), which is never sent")
	}
	for name, values := range u.Query() {
		for _, v := range values {
			e.suspect(name+"="+v, v)
		}
	}
	if s.Headers, err = e.expandAll("headers", s.Headers); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !headerName.MatchString(name) || strings.ContainsAny(s.Headers[name], "\r\n\x00") {
			return fmt.Errorf("headers: %q can't be sent: names are letters, digits and -, values are one line", name)
		}
		if reserved[strings.ToLower(name)] {
			return fmt.Errorf("headers: %s belongs to the protocol and can't be set", name)
		}
	}
	return nil
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// reserved are the headers that the protocol sets. An Idempotency-Key would make calls ones that may be sent twice.
var reserved = map[string]bool{
	"content-type": true, "content-length": true, "accept": true, "host": true, "connection": true, "transfer-encoding": true,
	"mcp-session-id": true, "mcp-protocol-version": true, "last-event-id": true, "idempotency-key": true, "x-idempotency-key": true,
}

// reference is ${NAME} or ${NAME:-what stands there otherwise}.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}`)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (e *entry) expandAll(member string, values map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if member == "env" && !variable.MatchString(name) {
			return nil, fmt.Errorf("env: %q is not the name of a variable", name)
		}
		value, err := e.expand(values[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", member, name, err)
		}
		if strings.ContainsRune(value, 0) {
			return nil, fmt.Errorf("%s: %s: a NUL character can't be in it", member, name)
		}
		out[name] = value
		e.suspect(name+"="+value, value)
		e.suspect(name+": "+value, value)
	}
	return out, nil
}

func (e *entry) expand(value string) (string, error) {
	if rest := reference.ReplaceAllString(value, ""); strings.Contains(rest, "${") {
		return "", errors.New("${ begins a reference that can't be read: write ${NAME} or ${NAME:-otherwise}")
	}
	var wrong error
	out := reference.ReplaceAllStringFunc(value, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		if ours(m[1]) {
			wrong = cmp.Or(wrong, fmt.Errorf("${%s} is a setting of approvalbot itself and isn't handed to a server, which could act as the bot with it: give the server something of its own, under another name", m[1]))
			return ""
		}
		text, ok := e.lookup(m[1])
		if !ok && m[2] == "" {
			wrong = cmp.Or(wrong, fmt.Errorf("${%s} is not in the environment: set it, or write ${%s:-otherwise}", m[1], m[1]))
		}
		if !ok {
			text = strings.TrimPrefix(m[2], ":-")
		}
		e.suspect(m[1]+"="+text, text)
		return text
	})
	return out, wrong
}

// ours tells the variables that make the bot what it is: with them a server could approve its own calls.
func ours(name string) bool {
	return strings.HasPrefix(name, "APPROVALBOT_") || name == "SLACK_BOT_TOKEN" || name == "SLACK_APP_TOKEN"
}
