package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"approvalbot/internal/ledger"
)

// A Scope is something that a token may do.
type Scope string

// The scopes. ScopeAll widens the others from the token's own sessions to all of them; it allows nothing by itself.
const (
	ScopeRead   Scope = "read"   // see runs, asks and sessions
	ScopeRun    Scope = "run"    // start and stop runs
	ScopeDecide Scope = "decide" // see and decide asks
	ScopeAll    Scope = "all"    // in every session, not only its own
)

var allScopes = []Scope{ScopeRead, ScopeRun, ScopeDecide, ScopeAll}

// minToken is how long a token has to be: shorter ones can be guessed.
const minToken = 16

// A Token lets a program in, under a name.
type Token struct {
	Name   string
	User   string // the Slack user whom it belongs to; then it acts as them. Empty: as itself
	Scopes []Scope
	hash   [sha256.Size]byte
}

// NewToken is a token that the operator gave as such.
func NewToken(name, secret string, scopes ...Scope) Token {
	return Token{Name: name, Scopes: scopes, hash: sha256.Sum256([]byte(secret))}
}

// DefaultToken is the one of a setting: it may do everything.
func DefaultToken(secret string) Token { return NewToken("default", secret, allScopes...) }

func (t *Token) may(s Scope) bool { return slices.Contains(t.Scopes, s) }

// actor is who acts when the token does: its person, where it has one. Both are the same person then.
func (t *Token) actor(team, name string) ledger.Actor {
	if t.User == "" {
		return ledger.Actor{Kind: ledger.ActorToken, ID: t.Name, Name: t.Name, Via: ledger.SurfaceHTTP}
	}
	return ledger.Actor{Kind: ledger.ActorUser, Team: team, ID: t.User, Name: name, Via: ledger.SurfaceHTTP}
}

// tokenEntry is a token as it stands in the file.
type tokenEntry struct {
	Name   string  `json:"name"`
	Token  string  `json:"token"`
	SHA256 string  `json:"sha256"`
	User   string  `json:"user"`
	Scopes []Scope `json:"scopes"`
}

// LoadTokens reads a file of tokens, and what in it is a secret. A file that others can read is refused.
func LoadTokens(file string) (tokens []Token, secrets []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, nil, fmt.Errorf("%s can be read or changed by others (mode %04o): chmod 600 it", file, mode)
	}
	var entries []tokenEntry
	if err := json.UnmarshalRead(f, &entries, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, fmt.Errorf(`%s has to be a JSON list of {"name","token" or "sha256","user","scopes"}: %w`, file, err)
	}
	if len(entries) == 0 {
		return nil, nil, fmt.Errorf("%s lists no token", file)
	}
	for i, e := range entries {
		t, err := e.read()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: token %d (%q): %w", file, i+1, e.Name, err)
		}
		tokens = append(tokens, t)
		if e.Token != "" {
			secrets = append(secrets, e.Token)
		}
	}
	if err := distinct(tokens); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	return tokens, secrets, nil
}

var (
	tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	slackUser = regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`)
)

func (e tokenEntry) read() (Token, error) {
	t := Token{Name: e.Name, User: e.User, Scopes: e.Scopes}
	switch {
	case !tokenName.MatchString(e.Name):
		return t, errors.New("its name has to be letters, digits, dots, dashes or underscores, 64 at most")
	case e.User != "" && !slackUser.MatchString(e.User):
		return t, fmt.Errorf("its user %q is no Slack user id (U…)", e.User)
	case (e.Token == "") == (e.SHA256 == ""):
		return t, errors.New("it needs either a token or its sha256")
	case e.Token != "" && len(e.Token) < minToken:
		return t, fmt.Errorf("the token has to have %d characters at least", minToken)
	case len(e.Scopes) == 0:
		return t, fmt.Errorf("it has no scopes: name some of %s", scopeNames(allScopes))
	}
	for _, s := range e.Scopes {
		if !slices.Contains(allScopes, s) {
			return t, fmt.Errorf("there is no scope %q: there are %s", s, scopeNames(allScopes))
		}
	}
	if e.Token != "" {
		t.hash = sha256.Sum256([]byte(e.Token))
		return t, nil
	}
	sum, err := hex.DecodeString(e.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return t, errors.New("its sha256 has to be 64 hexadecimal digits")
	}
	t.hash = [sha256.Size]byte(sum)
	return t, nil
}

func scopeNames(scopes []Scope) string {
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}

// distinct refuses tokens that could be taken for another.
func distinct(tokens []Token) error {
	names, hashes := map[string]bool{}, map[[sha256.Size]byte]bool{}
	for _, t := range tokens {
		switch {
		case names[t.Name]:
			return fmt.Errorf("two tokens are called %q", t.Name)
		case hashes[t.hash]:
			return fmt.Errorf("the token %q is the same as another one", t.Name)
		}
		names[t.Name], hashes[t.hash] = true, true
	}
	return nil
}

// token finds whose request it is; nil: nobody's. It takes as long for a wrong token as for a right one.
func (s *Server) token(r *http.Request) *Token {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	var found *Token
	for i := range s.Tokens {
		if subtle.ConstantTimeCompare(given[:], s.Tokens[i].hash[:]) == 1 {
			found = &s.Tokens[i]
		}
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return nil
	}
	return found
}
