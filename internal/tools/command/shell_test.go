package command

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A place where nothing can be run but the stubs a, b and c, which write down
// their names, and a few harmless programs that run others.
type jail struct{ dir string }

const stub = "#!/bin/sh\necho ${0##*/} >> \"$LOG\"\n"

func newJail(t *testing.T) jail {
	t.Helper()
	j := jail{t.TempDir()}
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(j.dir, name), []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"env", "timeout", "nice", "nohup", "xargs", "find", "sh"} {
		if at, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(at, filepath.Join(j.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return j
}

// run returns the stubs that a shell ran for a text.
func (j jail) run(t *rapid.T, shell, text string) []string {
	own, err := os.MkdirTemp(j.dir, "own") // what a text leaves in the background writes where nobody reads any more
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(own)
	work, log := filepath.Join(own, "work"), filepath.Join(own, "log")
	if err := errors.Join(os.Mkdir(work, 0o700), os.WriteFile(log, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell)
	cmd.Args = []string{"sh", "-c", text} // a bash that is called sh is what some systems have
	cmd.Dir, cmd.Env, cmd.WaitDelay = work, []string{"PATH=" + j.dir, "LOG=" + log}, time.Second
	cmd.Run() // whether it likes the text doesn't matter
	ran, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(ran))
}

// commands draws texts that name a, b and c in every way that shells have, and
// can do nothing but run them.
func commands() *rapid.Generator[string] {
	name := rapid.SampledFrom([]string{"a", "b", "c", "'a'", `\b`, `"c"`, "''a", "b\"\"", "$a", "{a,b}", "$'a'", "[a]", "./a", "A"})
	argument := rapid.SampledFrom([]string{"", " x", " 'x y'", " $x", " #", " ;", " \\\n", " '", " \"$x\"", " {}", " |", " &&", " &"})
	wrap := rapid.SampledFrom([]string{
		"%", "%; %", "% && %", "% || %", "! %", "% | %", "%\n%", "% & wait", "(%)", "{ %; }", "echo $(%)", "echo `%`", "echo \"$(%)\"", "x=$(%)", "x=1 %",
		"if %; then %; else %; fi", "for i in 1; do %; done", "while %; do %; break; done", "case x in x) %;; *) %;; esac", "f() { %; }; f",
		"cat <<E\n$(%)\nE\n", "cat <<'E'\n$(%)\nE\n", "% <<E\nx\nE\n", "%<<-E\n\tx\n\tE\n%", "env %", "env x=1 %", "nice -n 1 %", "timeout 9 %", "nohup %", "env -S '%'",
		"echo x | xargs %", "echo x | xargs -I@ %", "echo '%' | sh", "sh -c '%'", "sh -ec \"%\"", "eval '%'", "eval %", "trap '%' EXIT", "command %", "exec %",
		"find . -prune -exec % ';'", "find . -prune -exec sh -c '%' {} +", "$x %", "echo ${x:-$(%)}", "echo $((1+$(%)))", ": > f; %", "set -- %; \"$@\"",
		"a=%; $a", "[ -n \"$(%)\" ] && %", "% \\\n x", "# %\n%", "echo x # %", "time %", "function g { %; }; g", "coproc %", "[[ -n $(%) ]]", "% &> f", "% |& %", "echo <(%)", "$[ $(%) ]",
	})
	return rapid.Custom(func(t *rapid.T) string {
		text := wrap.Draw(t, "frame")
		for range rapid.IntRange(0, 2).Draw(t, "depth") {
			text = strings.Replace(text, "%", wrap.Draw(t, "inner"), 1)
		}
		for strings.Contains(text, "%") {
			text = strings.Replace(text, "%", name.Draw(t, "name")+argument.Draw(t, "argument"), 1)
		}
		return text
	})
}

// Whatever a real shell runs is among the programs that were named: with the
// words of the text, if it wasn't understood; without, if it was.
func TestWhatRunsWasNamed(t *testing.T) {
	var shells []string
	for _, shell := range []string{"/bin/dash", "/bin/bash", "/bin/sh"} {
		if _, err := os.Stat(shell); err == nil {
			shells = append(shells, shell)
		}
	}
	if len(shells) == 0 {
		t.Skip("there is no shell here")
	}
	j := newJail(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := commands().Draw(rt, "text")
		a := Parse(text)
		for _, shell := range shells {
			for _, ran := range j.run(rt, shell, text) {
				if !slices.Contains(a.Programs, ran) {
					rt.Fatalf("%q: %s ran %s, which is not in %+v", text, shell, ran, a)
				}
			}
		}
	})
}

// What is allowed only looks: each of these is run by a real shell, with the
// system's programs, and leaves everything as it was.
func TestAllowedCommandsOnlyLook(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the options are those of Linux, where a shell can be confined")
	}
	dir := t.TempDir()
	for _, name := range []string{"README.md", "a", "b", "x.txt", "notes.txt", "log.txt", "main.go", "go.mod", "a file.txt", "src/cmd/x.go"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("one\ntwo\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, dir)
	for _, r := range rows(t) {
		if r.decision != "allow" || !Parse(r.text).ReadOnly { // another test says so
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", r.text)
		cmd.Dir, cmd.WaitDelay = dir, time.Second
		out, _ := cmd.CombinedOutput()
		if ctx.Err() != nil {
			t.Errorf("%q doesn't end", r.text)
		}
		cancel()
		if strings.Contains(string(out), "invalid option") || strings.Contains(string(out), "unrecognized option") {
			t.Errorf("%q: %s", r.text, out)
		}
		if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
			t.Fatalf("%q changed something:\n%s", r.text, diff)
		}
	}
}

// snapshot is all that can be changed in a directory, but for when it was read.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := []byte{}
		if d.Type().IsRegular() {
			content, err = os.ReadFile(path)
		}
		all[path] = info.Mode().String() + info.ModTime().String() + string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
