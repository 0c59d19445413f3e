package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"approvalbot/internal/ledger"
)

const longToken = "0123456789abcdef"

func tokensFile(t testing.TB, content string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return file
}

func TestLoadTokens(t *testing.T) {
	sum := sha256.Sum256([]byte("another-long-token"))
	file := tokensFile(t, fmt.Sprintf(`[{"name":"ci","token":%q,"scopes":["read","run"]},
		{"name":"alice","sha256":%q,"user":"UALICE","scopes":["decide"]}]`, longToken, hex.EncodeToString(sum[:])), 0o600)
	tokens, secrets, err := LoadTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{longToken}, secrets); d != "" {
		t.Error(d)
	}
	s := &Server{Config: Config{Tokens: tokens, Team: "T1"}}
	for auth, want := range map[string]string{
		"Bearer " + longToken: "ci", "bearer  " + longToken: "ci", "Bearer another-long-token": "alice",
		"Bearer ": "", "": "", "Basic " + longToken: "", "Bearer " + longToken + "x": "", longToken: "",
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", auth)
		got := ""
		if tok := s.token(r); tok != nil {
			got = tok.Name
		}
		if got != want {
			t.Errorf("%q is %q, want %q", auth, got, want)
		}
	}
	if !tokens[0].may(ScopeRun) || tokens[0].may(ScopeDecide) || tokens[1].may(ScopeRead) {
		t.Errorf("%v", tokens)
	}
	// A token that names its person is that person; one that doesn't is itself.
	if d := cmp.Diff(ledger.Person{Team: "T1", ID: "UALICE"}, tokens[1].actor("T1", "Alice").Person()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(ledger.Person{ID: "token:ci"}, tokens[0].actor("T1", "").Person()); d != "" {
		t.Error(d)
	}
}

func TestLoadTokensRefuses(t *testing.T) {
	entry := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"token":%q,"scopes":["read"]%s}`, name, longToken, more)
	}
	for want, content := range map[string]string{
		"no token":                    `[]`,
		"JSON list":                   `{}`,
		"its name":                    `[` + entry("a b", "") + `]`,
		"two tokens":                  `[` + entry("a", "") + `,{"name":"a","token":"another-long-token","scopes":["read"]}]`,
		"the same as another":         `[` + entry("a", "") + `,` + entry("b", "") + `]`,
		"no Slack user":               `[` + entry("a", `,"user":"alice"`) + `]`,
		"either":                      `[` + entry("a", `,"sha256":"00"`) + `]`,
		"no scopes":                   `[{"name":"a","token":"0123456789abcdef","scopes":[]}]`,
		`no scope "write"`:            `[{"name":"a","token":"0123456789abcdef","scopes":["write"]}]`,
		"16 characters":               `[{"name":"a","token":"short","scopes":["read"]}]`,
		"64 hexadecimal":              `[{"name":"a","sha256":"zz","scopes":["read"]}]`,
		"unknown object member name":  `[` + entry("a", `,"admin":true`) + `]`,
		"duplicate object member nam": `[{"name":"a","name":"b","token":"0123456789abcdef","scopes":["read"]}]`,
	} {
		_, _, err := LoadTokens(tokensFile(t, content, 0o600))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if _, _, err := LoadTokens(tokensFile(t, `[`+entry("a", "")+`]`, mode)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, _, err := LoadTokens(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that isn't there")
	}
}

// Whatever stands in the file: it is an error, or tokens that can be told from each other.
func FuzzTokens(f *testing.F) {
	f.Add(`[{"name":"ci","token":"0123456789abcdef","scopes":["read"]}]`)
	f.Add(`[{"name":"","sha256":"","scopes":null}]`)
	f.Add(`[null]`)
	f.Fuzz(func(t *testing.T, content string) {
		tokens, _, err := LoadTokens(tokensFile(t, content, 0o600))
		if err != nil {
			return
		}
		for _, tok := range tokens {
			if tok.Name == "" || len(tok.Scopes) == 0 || tok.hash == sha256.Sum256(nil) {
				t.Errorf("%s gives %+v", content, tok)
			}
		}
		if distinct(tokens) != nil {
			t.Errorf("%s gives tokens that are alike", content)
		}
	})
}
