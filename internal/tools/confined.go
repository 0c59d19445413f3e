package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"approvalbot/internal/language"
	"approvalbot/internal/tools/process"
)

// held says in English what holds commands, for logs and models.
func (t *shell) held() string {
	if t.sandbox == nil {
		return Unconfined
	}
	return t.sandbox.Note()
}

// note is the same for people: it stands on each card.
func (t *shell) note() string {
	switch {
	case t.sandbox == nil:
		return t.lang.T(Unconfined)
	case t.lang == language.English:
		return t.sandbox.Note()
	}
	where := t.lang.T("the workspace")
	for _, dir := range t.write {
		where = t.lang.Tf("%s, %s", where, dir)
	}
	if t.network {
		return t.lang.Tf("Confined: can write only in %s; it can use the network.", where)
	}
	return t.lang.Tf("Confined: can write only in %s; no network.", where)
}

// runsAs is whose rights an unconfined command has. A confined one has none that are worth a name.
func (t *shell) runsAs() string {
	if t.sandbox != nil || t.user == "" {
		return ""
	}
	return t.lang.Tf("the user %s of this machine", t.user)
}

// userName is who this process is on its machine; empty if that isn't known.
func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// limits tell the model what it needn't try.
func (t *shell) limits() string {
	if t.sandbox == nil {
		return ""
	}
	return " " + t.sandbox.Note() + " Temporary files belong into $TMPDIR, which is emptied afterwards; /tmp and home directories don't exist for it."
}

// execute runs a command as the shell is configured. An error means that it was
// not started.
func (t *shell) execute(ctx context.Context, command string) (process.Ending, error) {
	c := process.Command{Argv: []string{"/bin/sh", "-c", command}, Dir: t.dir, Env: t.env, MaxOutput: t.maxOutput}
	if t.sandbox == nil {
		return c.Run(ctx)
	}
	temp, err := os.MkdirTemp(t.temp, tempPrefix)
	if err != nil {
		return process.Ending{}, fmt.Errorf("its directory for temporary files can't be made: %w", err)
	}
	defer remove(temp)
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return process.Ending{}, err
	}
	if c.Argv, c.Launch, err = t.sandbox.Launch(temp, c.Argv...); err != nil {
		return process.Ending{}, err
	}
	c.Env = withTemp(t.env, temp)
	return c.Run(ctx)
}

func withTemp(env []string, temp string) []string {
	out := make([]string, len(env))
	for i, entry := range env {
		if strings.HasPrefix(entry, "TMPDIR=") {
			entry = "TMPDIR=" + temp
		}
		out[i] = entry
	}
	return out
}

// tempPrefix begins the names of commands' own directories.
const tempPrefix = "approvalbot-"

// ClearTemp removes the directories of commands whose process was killed before it could. Whoever calls it knows that no
// other process has commands in Options.TempDir.
func (b *Builtin) ClearTemp() {
	if b.shell == nil || b.shell.sandbox == nil {
		return
	}
	entries, err := os.ReadDir(b.shell.temp)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), tempPrefix) {
			remove(filepath.Join(b.shell.temp, entry.Name()))
		}
	}
}

// remove removes a command's own directory, also where the command made directories in it that can't be written, and however
// deep it has nested them: each is moved up before it is gone through, so that no more than two are open at a time. All the
// descriptors that this program may have are fewer than a command can make directories.
func remove(dir string) {
	os.Chmod(dir, 0o700)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer os.Remove(dir)
	defer root.Close()
	c := clearing{root: root, mark: ".approvalbot-" + rand.Text() + "-"}
	for c.pass() { // until nothing is left, or nothing of it can be removed
	}
}

// A clearing is the removal of all that a directory holds.
type clearing struct {
	root  *os.Root
	mark  string // begins the names of what was moved up
	moved int
}

// pass goes through the top once. It reports whether anything was done.
func (c *clearing) pass() (done bool) {
	c.each(".", func(entry fs.DirEntry) {
		name := entry.Name()
		if c.root.Remove(name) == nil {
			done = true
			return
		}
		if !entry.IsDir() {
			return
		}
		c.root.Chmod(name, 0o700)
		c.each(name, func(below fs.DirEntry) { done = c.up(path.Join(name, below.Name()), below.IsDir()) || done })
		done = c.root.Remove(name) == nil || done
	})
	return done
}

// up removes what lies in a directory of the top, or moves it there.
func (c *clearing) up(name string, isDir bool) (done bool) {
	if c.root.Remove(name) == nil {
		return true
	}
	if !isDir {
		return false
	}
	c.root.Chmod(name, 0o700) // moving a directory changes it
	c.moved++
	return c.root.Rename(name, c.mark+strconv.Itoa(c.moved)) == nil
}

// each calls f for the entries of a directory, as far as it can be read.
func (c *clearing) each(name string, f func(fs.DirEntry)) {
	dir, err := c.root.Open(name)
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(1000)
		for _, entry := range entries {
			f(entry)
		}
		if err != nil || len(entries) == 0 {
			return
		}
	}
}

// try starts a command that does nothing: whether commands can be confined here
// is known when one was.
func (t *shell) try() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	end, err := t.execute(ctx, ":")
	if err == nil && !end.State.Success() {
		err = errors.New(strings.TrimSpace("it ended with " + end.State.String() + "\n" + end.Text))
	}
	if err != nil {
		return fmt.Errorf("commands can't be confined here: a first one was not run: %s", reason(err))
	}
	return nil
}
