package redact

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fake joins the halves of something that looks like a token, so that no file of
// ours holds one.
func fake(parts ...string) string { return strings.Join(parts, "") }

func TestText(t *testing.T) {
	own := "our-own-key-0123456789"
	r := New(own, "short", "")
	slackBot := fake("xoxb-", "123456789012-123456789012-abcdefghijklmnop")
	slackApp := fake("xapp-", "1-A0123456-9876543210-0123456789abcdef")
	openAI := fake("sk-", "proj-abcdefghijklmnopqrstuvwxyz012345")
	gitHub := fake("ghp", "_abcdefghijklmnopqrstuvwxyz0123456789")
	aws := fake("AKIA", "ABCDEFGHIJKLMNOP")
	jwt := fake("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", ".dozjgNryP4J3jVmN")
	pem := fake("-----BEGIN RSA ", "PRIVATE KEY-----\nMIIEpAIBAAKC\nabc=\n-----END RSA ", "PRIVATE KEY-----")

	for _, c := range []struct{ name, in, want string }{
		{"own", "echo " + own + "!", "echo ‹secret, 22 characters›!"},
		{"own twice", own + own, "‹secret, 22 characters›‹secret, 22 characters›"},
		{"short literals are left alone", "cut it short", "cut it short"},
		{"slack bot", "t=" + slackBot, "t=‹secret, 47 characters›"},
		{"slack app", slackApp + " x", "‹secret, 43 characters› x"},
		{"openai", "use " + openAI + ".", "use ‹secret, 40 characters›."},
		{"github", "git clone https://" + gitHub + "@github.com/a/b", "git clone https://‹secret, 40 characters›@github.com/a/b"},
		{"aws", aws, "‹secret, 20 characters›"},
		{"jwt", "cookie is " + jwt, "cookie is ‹secret, 57 characters›"},
		{"pem", "a\n" + pem + "\nb", "a\n‹secret, 79 characters›\nb"},
		{"cut pem", pem[:60], "‹secret, 60 characters›"},
		{"url", "psql postgres://bob:hunter2@db.example/x", "psql postgres://bob:‹secret, 7 characters›@db.example/x"},
		{"url without a user", "redis://:p4ss@host", "redis://:‹secret, 4 characters›@host"},
		{"bearer", "curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: Bearer ‹secret, 7 characters›' x"},
		{"bearer alone", "Bearer 0123456789abcdef01", "Bearer ‹secret, 18 characters›"},
		{"basic", "authorization: Basic dXNlcjpwdw==", "authorization: Basic ‹secret, 12 characters›"},
		{"custom header", `-H "X-Api-Key: abc123"`, `-H "X-Api-Key: ‹secret, 6 characters›"`},
		{"cookie", "Cookie: a=b; c=d\nHost: x", "Cookie: ‹secret, 8 characters›\nHost: x"},
		{"env", "DB_PASSWORD=hunter2 ./run", "DB_PASSWORD=‹secret, 7 characters› ./run"},
		{"env quoted", `export API_KEY="a b c"`, `export API_KEY="‹secret, 5 characters›"`},
		{"env single", `TOKEN='x y'`, `TOKEN='‹secret, 3 characters›'`},
		{"option", "mysql --password hunter2 db", "mysql --password ‹secret, 7 characters› db"},
		{"option quoted", `x --api-key "a b" y`, `x --api-key "‹secret, 3 characters›" y`},
		{"option equals", "x --token=abc y", "x --token=‹secret, 3 characters› y"},
		{"a quote that was cut off", `DB_PASSWORD="correct-horse`, `DB_PASSWORD="‹secret, 13 characters›`},
		{"a single quote that was cut off", `x --password 'correct horse bat…`, `x --password '‹secret, 18 characters›`},
		{"cut off on a line", "export TOKEN=\"a b\nls", "export TOKEN=\"‹secret, 3 characters›\nls"},
		{"a quote behind a backslash", `PASSWORD="a\"correct" ls`, `PASSWORD="‹secret, 10 characters›" ls`},
		{"cut off behind a backslash", `PASSWORD="abc\`, `PASSWORD="‹secret, 3 characters›\`},
		{"a command in JSON", `{"command":"PASSWORD=\"a b c\" ls"}`, `{"command":"PASSWORD=\"‹secret, 5 characters›\" ls"}`},
		{"an option in JSON", `{"command":"x --password \"a\\\"b\" ls"}`, `{"command":"x --password \"‹secret, 6 characters›\" ls"}`},
		{"cut off in JSON", `{"command":"PASSWORD=\"a b c`, `{"command":"PASSWORD=\"‹secret, 5 characters›`},
		{"own, cut", "echo " + own[:12] + "…", "echo ‹secret, 12 characters›…"},
		{"own, cut in front", "[…] " + own[8:] + " x", "[…] ‹secret, 14 characters› x"},
		{"own, cut to little", "echo " + own[:7], "echo our-own"},
		{"json", `{"password": "hunter2", "user": "bob"}`, `{"password": "‹secret, 7 characters›", "user": "bob"}`},
		{"json with quotes in it", `{"client_secret":"a\"b"}`, `{"client_secret":"‹secret, 4 characters›"}`},
		{"json in a string", `{"body":"{\"token\":\"abc\"}"}`, `{"body":"{\"token\":\"‹secret, 3 characters›\"}"}`},
		{"yaml", "user: bob\npassword: hunter2\n", "user: bob\npassword: ‹secret, 7 characters›\n"},
		{"one", "password=x", "password=‹secret, 1 character›"},
		{"in itself", "password=token=abc", "password=‹secret, 9 characters›"},
		{"a placeholder is no cover", "password=‹secret, 1 character›hunter2", "password=‹secret, 28 characters›"},
		{"twice in a row", "password=a token=b", "password=‹secret, 1 character› token=‹secret, 1 character›"},
		{"runes", "password=пароль", "password=‹secret, 6 characters›"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, hits := r.Text(c.in)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("Text(%q) (-want +got):\n%s", c.in, d)
			}
			checkHits(t, got, hits)
			if (len(hits) > 0) != strings.Contains(got, "‹secret, ") {
				t.Errorf("hits %v for %q", hits, got)
			}
		})
	}
}

// TestOrdinary: what people and programs write every day is left alone.
func TestOrdinary(t *testing.T) {
	for _, s := range []string{
		"git checkout 3f2a9c1b7d8e4f5061728394a5b6c7d8e9f00112",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"f47ac10b-58cc-4372-a567-0e02b2c3d479",
		"/usr/local/share/some-long-directory/name.with.dots/file_v1.2.3.tar.gz",
		"aGVsbG8gd29ybGQ=", "echo aGVsbG8gd29ybGQsIHRoaXMgaXMgdGV4dA== | base64 -d",
		"printf ok > proof.txt", "ls -la", "go test ./... -race -count=1",
		"https://example.com:8443/a/b?x=1#frag", "ssh://git@github.com/a/b.git", "git@github.com:a/b.git",
		"docker run -e POSTGRES_DB=app -p 5432:5432 postgres:16",
		`psql "postgres://bob:$PGPASSWORD@db/x"`, `mysql --password="$MYSQL_PWD" db`, "curl -H \"Authorization: Bearer $TOKEN\" x",
		"export TOKEN=${{ secrets.TOKEN }}", "PASSWORD=%PASSWORD%",
		"The token is missing.", "Set a password: it must be long.", "password reset", "forgot my password",
		"bearer token authentication", "basic authentication is used here",
		"kubectl get secret my-app -o yaml", "kubectl create secret generic my-app",
		`{"inputTokens":12,"max_tokens":4096,"tokenizer":"cl100k"}`, `{"password":null}`, `{"token":""}`,
		"cd $PWD && PWD=/home/bob", "--token-file /run/x", "--password-stdin < f", "--token --verbose",
		"cat secrets/readme.md", "risk-free task-list desk-lamp", "sk-learn scikit-learn sk-1",
		"type Token struct { Kind string }", "token := next()", "if token == nil {", "return a.token", "tokens = 5",
		"2026-01-02T03:04:05Z", "user@example.com", "C:\\Users\\bob\\x", "a:b@c", "1:2:3",
	} {
		if got, hits := New().Text(s); got != s {
			t.Errorf("Text(%q) = %q, hits %v", s, got, hits)
		}
	}
}

// What is a secret in one text is one in others about the same, whole or cut.
func TestWith(t *testing.T) {
	r := New("literal-secret-1")
	_, hits := r.Text(`PASSWORD="correct horse" login --token=x1y2z3w4v5 && echo password=Bearer 0123456789abcdef01`)
	known := r.With(hits)
	for in, want := range map[string]string{
		"Log in with correct horse":    "Log in with ‹secret, 13 characters›",
		"Log in with correct ho…":      "Log in with ‹secret, 10 characters›…",
		"x1y2z3w4v5 literal-secret-1":  "‹secret, 10 characters› ‹secret, 16 characters›",
		"it is 0123456789abcdef01":     "it is ‹secret, 18 characters›",
		"there is nothing to say here": "there is nothing to say here",
	} {
		if got, _ := known.Text(in); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
	if r.With(nil) != r {
		t.Error("a text without a secret made another redactor")
	}
}

func TestHidesAny(t *testing.T) {
	_, hits := New("literal;secret").Text(`A_TOKEN='x; y' B_TOKEN=z password=Bearer 0123456789abcdef01 literal;secret`)
	var got []bool
	for _, h := range hits {
		got = append(got, h.HidesAny("&;"))
	}
	if d := cmp.Diff([]bool{true, false, false, false, true}, got); d != "" {
		t.Error(d)
	}
}

func TestHitsStand(t *testing.T) {
	in := "password=token=abc then postgres://u:pw1@h and --secret x"
	got, hits := New().Text(in)
	var shown []string
	for _, h := range hits {
		shown = append(shown, got[h.Start:h.End])
	}
	want := []string{"‹secret, 9 characters›", "‹secret, 3 characters›", "‹secret, 1 character›"}
	if d := cmp.Diff(want, shown); d != "" {
		t.Errorf("hits in %q (-want +got):\n%s", got, d)
	}
}

func checkHits(t interface{ Errorf(string, ...any) }, out string, hits []Hit) {
	end := 0
	for _, h := range hits {
		if h.Start < end || h.End > len(out) || !isPlaceholder.MatchString(out[h.Start:h.End]) {
			t.Errorf("hit %+v isn't a placeholder of %q", h, out)
			return
		}
		end = h.End
	}
}

// secretish draws texts in which secrets, half secrets and placeholders stand
// next to each other.
func secretish() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.OneOf(
			rapid.SampledFrom([]string{
				"password=", "--token ", `"secret": "`, `"`, "'", "://u:", "@", "Bearer ", "Authorization: ", "\n", " ", "=", ":",
				"‹secret, 5 characters›", "‹secret, ", "characters›", "12345678", "sk-abcdefghijklmnopqrstuvwxyz", "cookie: ", "{", "}", "\\",
				"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "AKIAABCDEFGHIJKLMNOP", "hunter2hunter2", "xoxb-12345678", "eyJaaaaaaaaaa.aaaaaaaaa.aaaaaaaaa",
			}),
			rapid.String())
		return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
	})
}

func TestProperties(t *testing.T) {
	literals := []string{"hunter2hunter2", "2hunter2hunter", "Bearer 12345678"}
	r := New(literals...)
	rapid.Check(t, func(t *rapid.T) {
		in := secretish().Draw(t, "text")
		once, hits := r.Text(in)
		checkHits(t, once, hits)
		for _, l := range literals {
			if strings.Contains(once, l) {
				t.Fatalf("%q is left in %q", l, once)
			}
		}
		if twice, again := r.Text(once); twice != once || len(again) > 0 {
			t.Fatalf("not idempotent:\n%q\n%q", once, twice)
		}
		if utf8.ValidString(in) && !utf8.ValidString(once) {
			t.Fatalf("%q was cut inside a character: %q", in, once)
		}
	})
}

func TestJSON(t *testing.T) {
	r := New("literal-secret-1")
	for _, c := range []struct{ name, in, want string }{
		{"by name", `{"password":"a","n":1.50,"Authorization":"x","nested":{"api-key":[1,true,"b",null]}}`,
			`{"password":"‹secret, 1 character›","n":1.50,"Authorization":"‹secret, 1 character›","nested":{"api-key":["‹secret, 1 character›",true,"‹secret, 1 character›",null]}}`},
		{"below a name", `{"api-key":{"a":["b",1]}}`, `{"api-key":{"a":["‹secret, 1 character›","‹secret, 1 character›"]}}`},
		{"by content", `["x literal-secret-1","--password y"]`, `["x ‹secret, 16 characters›","--password ‹secret, 1 character›"]`},
		{"in a name", `{"literal-secret-1":1}`, `{"‹secret, 16 characters›":1}`},
		{"order and duplicates", `{"b":1,"a":2,"b":3}`, `{"b":1,"a":2,"b":3}`},
		{"references", `{"token":"$TOKEN","secret":null,"inputTokens":5,"pageToken":"abc"}`, `{"token":"$TOKEN","secret":null,"inputTokens":5,"pageToken":"abc"}`},
		{"not JSON", `password=a {`, `password=‹secret, 1 character› {`},
		{"cut JSON", `{"password":"abc`, `{"password":"‹secret, 3 characters›`},
		{"empty", ``, ``},
		{"written otherwise", "{\n  \"a\": \"\\u003c\"\n}", `{"a":"<"}`},
		{"lines", "{\"token\":\"a\"}\n{\"a\":1}\n", "{\"token\":\"‹secret, 1 character›\"}\n{\"a\":1}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.JSON([]byte(c.in))
			if d := cmp.Diff(c.want, string(got)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			_, hits := r.Text(c.in)
			if hides := strings.Contains(c.want, "‹secret") || len(hits) > 0; r.Hides(c.in) != hides {
				t.Errorf("it hides something: %t, want %t", !hides, hides)
			}
			if again := r.JSON(got); string(again) != string(got) {
				t.Errorf("not idempotent: %s", again)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"password=x", "a://b:c@d", "-----BEGIN PRIVATE KEY-----", "‹secret, 5 characters›", `"token":"\"`, "\xff=secret="} {
		f.Add(s)
	}
	r := New("hunter2hunter2")
	f.Fuzz(func(t *testing.T, s string) {
		once, hits := r.Text(s)
		checkHits(t, once, hits)
		if strings.Contains(once, "hunter2hunter2") {
			t.Fatalf("the secret is left in %q", once)
		}
		if twice, _ := r.Text(once); twice != once {
			t.Fatalf("not idempotent:\n%q\n%q", once, twice)
		}
	})
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":"password=x"}`, `[1,{"token":{"a":[2]}}]`, `{"a":1}{"b":2}`, "\"\xff\""} {
		f.Add([]byte(s))
	}
	r := New("hunter2hunter2")
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := r.JSON(raw)
		if json.Valid(raw) && !json.Valid(got) {
			t.Fatalf("%q became %q", raw, got)
		}
		if strings.Contains(string(got), "hunter2hunter2") {
			t.Fatalf("the secret is left in %q", got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	r := New("our-own-key-0123456789")
	for name, s := range map[string]string{
		"plain":    strings.Repeat("all work and no play makes a dull log line\n", 1500),
		"telling":  strings.Repeat("the token of this session is not a secret, see the key\n", 1200),
		"one line": `{"a":"` + strings.Repeat("key: value, token - more words; ", 2000) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				r.Text(s)
			}
		})
	}
}
