package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"approvalbot/internal/tools/process"
)

// note is the sentence about confinement that stands on each card.
func (t *shell) note() string {
	if t.sandbox == nil {
		return Unconfined
	}
	return t.sandbox.Note()
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
	temp, err := os.MkdirTemp(t.temp, "approvalbot-")
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

// remove removes a command's own directory, also where the command made
// directories in it that can't be written.
func remove(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return
	}
	defer root.Close()
	fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			root.Chmod(path, 0o700)
		}
		return nil // the rest is removed as far as it can be
	})
	os.RemoveAll(dir)
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
