//go:build linux

package confine_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"approvalbot/internal/tools/confine"
)

// Whatever a command does to get at our files, it neither reads nor changes them.
func TestPathsOutside(t *testing.T) {
	p := newPlace(t)
	commands := []string{
		// Reading.
		`cat "$SECRETS/journal/journal.db"`, `cat ../bot/journal/journal.db-wal`, `cat "$SECRETS/.env"`, `cat "$SECRETS/policy.yaml"`,
		`cat "$SECRETS/tokens.json"`, `cat "$SECRETS/mcp.json"`, `cat "$SECRETS/actions.yaml"`, `cat "$SECRETS/devslack/state.json"`,
		`ln -s "$SECRETS/.env" link; cat link`, `ln -s "$SECRETS" dir; cat dir/.env`, `ln -s .. up; cat up/bot/.env`,
		`ln "$SECRETS/.env" hard; cat hard`, `cd "$SECRETS" && cat .env`, `cd ..; cat bot/.env`, `exec cat "$SECRETS/.env"`,
		`cat "/proc/self/root$SECRETS/.env"`, `cat /proc/self/cwd/../bot/.env`, `cat "/proc/$$/root$SECRETS/.env"`, `exec 5<.; cat /proc/self/fd/5/../bot/.env`,
		`cp -r "$SECRETS" copy; cat copy/.env`, `tar cf - "$SECRETS" 2>/dev/null | cat`, `sh -c 'sh -c "cat \"$SECRETS/.env\""'`, `. "$SECRETS/.env"`,
		`(cat "$SECRETS/.env" &) ; wait`, `setsid cat "$SECRETS/.env"`, `nohup cat "$SECRETS/.env"`, `env -i cat "$SECRETS/.env"`, `dd if="$SECRETS/.env"`,
		`while read -r l; do echo "$l"; done < "$SECRETS/.env"`, `sudo -n cat "$SECRETS/.env"`, `su -c "cat $SECRETS/.env"`,
		`ls "$SECRETS"`, `find "$SECRETS" -type f`, `echo "$SECRETS"/j*`,
		// Changing.
		`echo changed > "$SECRETS/journal/journal.db"`, `echo changed >> "$SECRETS/policy.yaml"`, `: > "$SECRETS/tokens.json"`,
		`truncate -s 0 "$SECRETS/.env"`, `rm -f "$SECRETS/.env"`, `rm -rf "$SECRETS"`, `mv "$SECRETS/.env" .`, `mv "$SECRETS" mine`,
		`mv "$SECRETS/.env" "$SECRETS/gone"`, `mkdir "$SECRETS/new"`, `touch "$SECRETS/new"`, `ln -s /etc/passwd "$SECRETS/new"`, `mkfifo "$SECRETS/new"`,
		`echo x > new; mv new "$SECRETS/.env"`, `echo x > new; ln new "$SECRETS/new"`, `cp -f new "$SECRETS/.env"`, `ln -sf "$SECRETS/.env" out; echo changed > out`,
		`mv ../workspace ../bot/workspace`, `mount -t tmpfs none "$SECRETS"`, `mount --bind "$SECRETS" .`, `unshare -rm sh -c 'mount --bind "$SECRETS" .; cat .env'`,
		`chroot / cat "$SECRETS/.env"`, `perl -e 'open(F,">>",$ENV{SECRETS}."/.env"); print F "changed"'`, `sed -i s/made/changed/ "$SECRETS/.env"`,
	}
	for i, text := range p.each(p.options(), commands) {
		listed := strings.Contains(text, "journal") && !strings.Contains(text, "denied")
		if strings.Contains(text, secret) || listed {
			t.Errorf("%s: %s", commands[i], text)
		}
	}
	p.untouched()
	p.clean()
	// The same works where nothing holds it.
	for _, command := range []string{`cat "$SECRETS/.env"`, `cat ../bot/.env`, `ln "$SECRETS/.env" hard; cat hard`, `cat /proc/self/cwd/../bot/.env`} {
		if end := p.free(command); !strings.Contains(end.Text, secret) {
			t.Errorf("%s is no attack: %s", command, end.Text)
		}
		p.clean()
	}
}

// each executes the commands in one confined one, each in a directory of its own, and gives what each wrote.
func (p *place) each(o confine.Options, commands []string) []string {
	p.Helper()
	const end = "\n-- the next --\n"
	script := "export SECRETS BOT SELF\n"
	for i, command := range commands {
		quoted := "'" + strings.ReplaceAll(strings.ReplaceAll(command, "../", "../../"), "'", `'\''`) + "'"
		script += fmt.Sprintf("mkdir %d; (cd %[1]d && exec sh -c %s) 2>&1; printf '\n-- the next --\n'\n", i, quoted)
	}
	all := strings.Split(p.run(o, script).Text, end)
	if len(all) != len(commands)+1 {
		p.Fatalf("%d commands gave %d outputs: %s", len(commands), len(all), all)
	}
	return all[:len(commands)]
}

// clean empties the workspace between two attempts.
func (p *place) clean() {
	p.Helper()
	entries, err := os.ReadDir(p.workspace)
	if err != nil {
		p.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(p.workspace, entry.Name())); err != nil {
			p.Fatal(err)
		}
	}
}

// What usual work needs does work.
func TestUsualWork(t *testing.T) {
	p := newPlace(t)
	want := map[string]string{
		`printf ok > a && cat a && mv a b && mkdir -p d/e && mv b d/e/ && ln d/e/b hard && ln -s d/e/b soft && cat hard soft`: "okokok",
		`echo x > "$TMPDIR/t" && mv "$TMPDIR/t" moved && cat moved`:                                                           "x\n",
		`printf '#!/bin/sh\necho ran' > s && chmod +x s && ./s`:                                                               "ran\n",
		`echo gone > /dev/null; head -c 3 /dev/zero | wc -c | tr -d ' '`:                                                      "3\n",
		`echo out > /dev/stdout`:                                       "out\n",
		`mkfifo f; (echo through > f &); cat f`:                        "through\n",
		`sleep 1000 & kill $!; wait $! 2>/dev/null; echo $?`:           "143\n",
		`cat < /dev/null; echo $?`:                                     "0\n",
		`ls /proc/self/ > /dev/null && ls /usr > /dev/null && echo ok`: "ok\n",
		`grep -c ^root: /etc/passwd`:                                   "1\n",
		`ulimit -c`:                                                    "0\n",
		`grep -h -e NoNewPrivs -e CapEff -e CapPrm -e CapAmb /proc/self/status | tr -d '\t'`: "CapPrm:0000000000000000\nCapEff:0000000000000000\nCapAmb:0000000000000000\nNoNewPrivs:1\n",
	}
	commands := slices.Sorted(maps.Keys(want))
	for i, text := range p.each(p.options(), commands) {
		if text != want[commands[i]] {
			t.Errorf("%s: got %q, want %q", commands[i], text, want[commands[i]])
		}
	}
}

// The rest of the machine is hidden, or at most as public as it is to everybody.
func TestTheRestOfTheMachine(t *testing.T) {
	p := newPlace(t)
	commands := []string{
		"ls /", "ls /root", "ls /home", "ls /tmp", "ls /var", "ls /srv", "ls /run", "ls /sys", "ls /mnt", "ls /dev/shm", "ls ~root/.ssh", "cat /etc/shadow",
		"echo x > /etc/cron.d/x", "echo x > /var/spool/cron/x", "echo x > /usr/local/bin/x", "echo x > /tmp/confine-test", "echo x > /proc/sys/kernel/core_pattern",
		"head -c 1 /proc/kcore", "echo x > /dev/tty", "echo x > /dev/ptmx", "cat /dev/vda", "cat /proc/1/environ",
	}
	for i, command := range commands {
		commands[i] = "(" + command + ") 2>/dev/null && echo it worked"
	}
	for i, text := range p.each(p.options(), commands) {
		if strings.Contains(text, "it worked") {
			t.Errorf("%s: %s", commands[i], text)
		}
	}
}

// More can be given, but never what is ours.
func TestMoreToReadAndWrite(t *testing.T) {
	p := newPlace(t)
	read, write := filepath.Join(p.base, "read"), filepath.Join(p.base, "write")
	p.put(filepath.Join(read, "a"), "a")
	p.mkdir(write)
	o := p.options()
	o.Read, o.Write = []string{read}, []string{write}
	end := p.run(o, `cat ../read/a; (echo x > ../read/b) 2>/dev/null || echo no; cp ../read/a ../write/b && cat ../write/b; ls ../bot 2>/dev/null || echo no`)
	if end.Text != "ano\nano\n" {
		t.Errorf("got %q", end.Text)
	}
	s, err := confine.New(o)
	if err != nil || s.Note() != "Confined: can write only in the workspace and "+write+"; no network." {
		t.Errorf("got %q, %v", s.Note(), err)
	}
}

func TestNewRefuses(t *testing.T) {
	p := newPlace(t)
	hard := filepath.Join(p.base, "hard")
	p.put(filepath.Join(p.base, "linked", "file"), "x")
	if err := os.Link(filepath.Join(p.base, "linked", "file"), hard); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.secrets, filepath.Join(p.base, "way")); err != nil {
		t.Fatal(err)
	}
	own := filepath.Dir(p.self)
	for name, tt := range map[string]struct {
		change func(o *confine.Options)
		want   string
	}{
		"a workspace with a file of ours":         {func(o *confine.Options) { o.Protected = append(o.Protected, filepath.Join(p.workspace, ".env")) }, "move that elsewhere"},
		"a workspace in a directory of ours":      {func(o *confine.Options) { o.Workspace = filepath.Join(p.secrets, "journal") }, "choose another directory"},
		"a workspace with the program":            {func(o *confine.Options) { o.Workspace, o.Protected = own, nil }, "contains the program itself"},
		"everything":                              {func(o *confine.Options) { o.Workspace = "/" }, "move that elsewhere"},
		"no workspace":                            {func(o *confine.Options) { o.Workspace = p.base + "/none" }, "no such file"},
		"reading ours":                            {func(o *confine.Options) { o.Read = []string{p.secrets + "/.env"} }, "may not reach"},
		"reading what contains ours":              {func(o *confine.Options) { o.Read = []string{p.base} }, "may not reach"},
		"reading ours by a link":                  {func(o *confine.Options) { o.Read = []string{p.base + "/way"} }, "may not reach"},
		"writing what contains ours":              {func(o *confine.Options) { o.Write = []string{p.base} }, "may not reach"},
		"writing the program":                     {func(o *confine.Options) { o.Write, o.Protected = []string{own}, nil }, "contains the program itself"},
		"reading a relative path":                 {func(o *confine.Options) { o.Read = []string{"usr"} }, "absolute"},
		"a file of ours with another name":        {func(o *confine.Options) { o.Protected = []string{hard} }, "hard link"},
		"a file of ours, in a directory, with it": {func(o *confine.Options) { o.Protected = []string{p.base + "/linked"} }, "hard link"},
	} {
		o := p.options()
		tt.change(&o)
		if _, err := confine.New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, tt.want)
		}
	}
}

// A launcher that can't do its part says so, and nothing runs.
func TestNothingRunsUnlessConfined(t *testing.T) {
	p := newPlace(t)
	s, err := confine.New(p.options())
	if err != nil {
		t.Fatal(err)
	}
	launcher, told, err := s.Launch(filepath.Join(p.base, "gone"), "/bin/sh", "-c", "touch ran")
	if err != nil {
		t.Fatal(err)
	}
	for name, brief := range map[string][]byte{"a directory that is gone": told, "no brief": {}, "half a brief": told[:len(told)/2]} {
		c := p.command("")
		c.Argv, c.Launch = launcher, brief
		if _, err := c.Run(t.Context()); err == nil {
			t.Errorf("%s: it was started", name)
		}
	}
	c := p.command("") // alone, with nobody to tell it anything
	c.Argv = launcher
	if end, err := c.Run(t.Context()); err == nil && end.State.Success() {
		t.Errorf("alone: %s", end.Text)
	}
	if _, err := os.Stat(filepath.Join(p.workspace, "ran")); err == nil {
		t.Error("it ran")
	}
}

// Many at once don't end each other.
func TestCommandsAtOnce(t *testing.T) {
	p := newPlace(t)
	s, err := confine.New(p.options())
	if err != nil {
		t.Fatal(err)
	}
	ready := filepath.Join(p.workspace, "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	long := p.command(`echo > ready; read -r _ < go; echo still there`)
	if err := syscall.Mkfifo(filepath.Join(p.workspace, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	long.Argv, long.Launch, err = s.Launch(p.temp, long.Argv...)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		end, err := long.Run(t.Context())
		if err != nil {
			end.Text = err.Error()
		}
		done <- end.Text
	}()
	f, err := os.OpenFile(ready, os.O_RDWR, 0) // which doesn't wait for the command to open it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begun := make(chan error, 1)
	go func() { // it ends with the line, or with the file
		_, err := f.Read(make([]byte, 1))
		begun <- err
	}()
	select {
	case err := <-begun:
		if err != nil {
			t.Fatal(err)
		}
	case text := <-done:
		t.Fatalf("the first ended: %q", text)
	}
	if end := p.run(p.options(), `kill -KILL -1; (kill -KILL "$BOT") 2>/dev/null || echo no`); end.Text != "no\n" {
		t.Errorf("the second: %q", end.Text)
	}
	if err := os.WriteFile(filepath.Join(p.workspace, "go"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := <-done; text != "still there\n" {
		t.Errorf("the first: %q", text)
	}
}

// What is ours stays out of reach also in a directory that programs need.
func TestOursAmongTheSystems(t *testing.T) {
	p := newPlace(t)
	own := []string{"/etc/hostname", "/usr/share/doc"}
	o := p.options()
	for _, path := range own {
		if _, err := os.Stat(path); err != nil {
			t.Skip(err)
		}
		o.Protected = append(o.Protected, path)
	}
	end := p.run(o, `cat /etc/hostname 2>/dev/null || echo no; ls /usr/share/doc 2>/dev/null || echo no; ls /usr/lib /usr/bin > /dev/null && echo yes`)
	if !strings.HasPrefix(end.Text, "no\nno\n") || !strings.HasSuffix(end.Text, "yes\n") {
		t.Errorf("got %q", end.Text)
	}
	if end := p.run(p.options(), `cat /etc/hostname >/dev/null && ls /usr/share/doc >/dev/null && echo yes`); end.Text != "yes\n" {
		t.Errorf("without that: %q", end.Text)
	}
}

// A command can signal what it started, and not the keeper that ends it.
func TestOnlyItsOwnCanBeSignalled(t *testing.T) {
	p := newPlace(t)
	const others = `sleep 1000 & own=$!; for p in /proc/[0-9]*; do p=${p#/proc/}; [ "$p" = $$ ] || ! kill -0 "$p" 2>/dev/null || [ "$p" = "$own" ] || echo "$p"; done; kill -0 $own && echo own`
	if end := p.run(p.options(), others); end.Text != "own\n" {
		t.Errorf("it can signal %q", end.Text)
	}
}
