//go:build linux

package confine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"approvalbot/internal/tools/confine"
	"approvalbot/internal/tools/process"
)

// The test binary is also what attacks: a confined command runs it with the name of an attack.
const attackEnv = "CONFINE_TEST_ATTACK"

func TestMain(m *testing.M) {
	if tries := os.Getenv(attackEnv); tries != "" {
		os.Exit(attack(tries))
	}
	if how := os.Getenv(hardenEnv); how != "" {
		hardened(how)
		return
	}
	os.Exit(m.Run())
}

// A try is one attack.
type try struct {
	Name string
	Args []string
}

// attack tries one thing after the other, and writes a line about each.
func attack(text string) int {
	var tries []try
	if err := json.Unmarshal([]byte(text), &tries); err != nil {
		fmt.Println(err)
		return 2
	}
	for _, one := range tries {
		if err := attacks[one.Name](one.Args); err != nil {
			fmt.Println("refused:", err)
		} else {
			fmt.Println("it worked")
		}
	}
	return 0
}

// attackWith is the command that makes the attacks.
func attackWith(tries ...try) string {
	text, err := json.Marshal(tries)
	if err != nil {
		panic(err)
	}
	return attackEnv + "='" + string(text) + `' "$SELF"`
}

// available lets a test go on where commands can be confined. Where tests decide what is shipped they have to be.
func available(t testing.TB) {
	t.Helper()
	err := confine.Available()
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// place is a workspace, and beside it what is none of a command's business.
type place struct {
	testing.TB
	base, workspace, temp, secrets string
	self                           string // the test binary, which commands may run
}

const secret = "made-up-secret-of-the-bot"

// The files that the bot would have, each with the secret in it.
var secretFiles = []string{"journal/journal.db", "journal/journal.db-wal", "devslack/state.json", ".env", "policy.yaml", "tokens.json", "mcp.json", "actions.yaml"}

func newPlace(t testing.TB) *place {
	t.Helper()
	available(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{TB: t, base: base, workspace: filepath.Join(base, "workspace"), temp: filepath.Join(base, "temp"), secrets: filepath.Join(base, "bot")}
	p.mkdir(p.workspace)
	p.mkdir(p.temp)
	for _, name := range secretFiles {
		p.put(filepath.Join(p.secrets, name), secret)
	}
	if p.self, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) mkdir(dir string) {
	p.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.Fatal(err)
	}
}

func (p *place) put(file, text string) {
	p.Helper()
	p.mkdir(filepath.Dir(file))
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

func (p *place) options() confine.Options {
	return confine.Options{Workspace: p.workspace, Protected: []string{p.secrets}, Read: []string{p.self}}
}

// run executes a command confined as o says.
func (p *place) run(o confine.Options, command string) process.Ending {
	p.Helper()
	s, err := confine.New(o)
	if err != nil {
		p.Fatal(err)
	}
	c := p.command(command)
	if c.Argv, c.Launch, err = s.Launch(p.temp, c.Argv...); err != nil {
		p.Fatal(err)
	}
	end, err := c.Run(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return end
}

// free executes it with nothing to hold it, which shows that an attack is one.
func (p *place) free(command string) process.Ending {
	p.Helper()
	end, err := p.command(command).Run(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return end
}

func (p *place) command(command string) process.Command {
	env := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + p.workspace, "SELF=" + p.self, "BOT=" + strconv.Itoa(os.Getpid()),
		"SECRETS=" + p.secrets, "TMPDIR=" + p.temp,
	}
	return process.Command{Argv: []string{"/bin/sh", "-c", command}, Dir: p.workspace, Env: env, MaxOutput: 32 << 10}
}

// untouched fails the test if a secret file was changed, or anything is beside them.
func (p *place) untouched() {
	p.Helper()
	for _, name := range secretFiles {
		if text, err := os.ReadFile(filepath.Join(p.secrets, name)); err != nil || string(text) != secret {
			p.Errorf("%s: %q, %v", name, text, err)
		}
	}
	var found int
	err := filepath.WalkDir(p.secrets, func(_ string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found++
		}
		return err
	})
	if err != nil || found != len(secretFiles) {
		p.Errorf("%d files, %v", found, err)
	}
}

// outcomes are what the attacks of a command had as results.
func (p *place) outcomes(end process.Ending, n int) []string {
	p.Helper()
	lines := strings.Split(strings.TrimSuffix(end.Text, "\n"), "\n")
	if len(lines) != n {
		p.Fatalf("%d attacks said: %s", n, end.Text)
	}
	return lines
}

func refused(outcome string) bool { return strings.HasPrefix(outcome, "refused: ") }
