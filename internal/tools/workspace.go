package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"approvalbot/internal/language"
)

// workspace is the directory that the built-in tools work in.
//
// Every access goes through root, so no path and no link leads out. On top of
// that an opened file is asked for its real path before anything is done with
// it: what was opened is what gets checked, however links change meanwhile, and
// it has to be what the call says by name.
type workspace struct {
	root      *os.Root
	dir       string // absolute, links resolved
	protected protected
	maxFile   int64
	lang      language.Language // of what people read

	// writing serializes changes: an edit reads, replaces and writes, and two
	// edits of one file in the same round must both be in it.
	writing sync.Mutex
}

func openWorkspace(dir string, own []string, maxFile int64) (*workspace, error) {
	real, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if real, err = filepath.EvalSymlinks(real); err != nil {
		return nil, fmt.Errorf("tools: the workspace: %w", err)
	}
	p, err := newProtected(own)
	if err != nil {
		return nil, err
	}
	if p.covers(real) {
		return nil, fmt.Errorf("tools: the workspace %s lies in a directory that tools may not touch", real)
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("tools: the workspace: %w", err)
	}
	return &workspace{root: root, dir: real, protected: p, maxFile: maxFile}, nil
}

// cleanPath checks a path that a model gave and returns it cleaned, relative to
// the workspace.
func cleanPath(name string) (string, error) {
	switch {
	case name == "":
		return "", errorf(CodeInvalidArguments, "The path is empty; give one relative to the workspace.")
	case hasControl(name):
		return "", errorf(CodeInvalidArguments, "The path contains a control character.")
	case path.IsAbs(name):
		return "", errorf(CodeNotAllowed, "%s is an absolute path; give one relative to the workspace.", name)
	}
	// Also where it would stay inside: with links, a/../b is not always b, and
	// people shouldn't have to work it out.
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", errorf(CodeNotAllowed, "%s contains \"..\"; give the path from the top of the workspace.", name)
	}
	return path.Clean(name), nil
}

// open opens a file or directory for reading, having made sure that it is one
// that tools may see.
func (w *workspace) open(name string) (*os.File, os.FileInfo, error) {
	return w.openIn(w.protected.look(), name)
}

// openIn is open for somebody who has looked already.
func (w *workspace) openIn(l *look, name string) (*os.File, os.FileInfo, error) {
	// Without O_NONBLOCK opening a FIFO would wait for somebody to write to it.
	f, err := w.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fileError(name, err)
	}
	info, err := w.check(l, name, f)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// check tells what was opened, unless it is protected or isn't what the name says.
func (w *workspace) check(l *look, name string, f *os.File) (os.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fileError(name, err)
	}
	real, err := realPath(f)
	if err != nil {
		return nil, fileError(name, err)
	}
	if l.covers(real) || linkCount(info) > 1 && !info.IsDir() && l.links(info) {
		return nil, errProtected(name)
	}
	return info, w.named(name, real)
}

// named makes sure that a path is the file's own one. People and rules judge a call
// by its path, so one that gets to the file by way of a link, or of other letters
// where the file system doesn't tell large from small, would be judged as another.
func (w *workspace) named(name, real string) error {
	if real == filepath.Join(w.dir, name) {
		return nil
	}
	own, err := filepath.Rel(w.dir, real)
	if err != nil || !filepath.IsLocal(own) {
		return errorf(CodeNotAllowed, "%s leads out of the workspace.", name)
	}
	return errorf(CodeNotAllowed, "%s is another name of %s, by a link for instance; use that.", name, own)
}

func errProtected(name string) error {
	return errorf(CodeNotAllowed, "%s belongs to approvalbot itself; tools may not touch it.", name)
}

func linkCount(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

// openRegular opens a regular file of bearable size for reading.
func (w *workspace) openRegular(l *look, name string) (*os.File, os.FileInfo, error) {
	f, info, err := w.openIn(l, name)
	if err != nil {
		return nil, nil, err
	}
	if err := w.regular(name, info); err != nil {
		f.Close()
		return nil, nil, err
	}
	if kernelFile(f) {
		f.Close()
		return nil, nil, errorf(CodeNotAllowed, "%s is not a file but a view of the running system.", name)
	}
	return f, info, nil
}

func (w *workspace) regular(name string, info os.FileInfo) error {
	switch {
	case info.IsDir():
		return errorf(CodeInvalidArguments, "%s is a directory, not a file.", name)
	case !info.Mode().IsRegular():
		return errorf(CodeNotAllowed, "%s is not a regular file.", name)
	case info.Size() > w.maxFile:
		return errorf(CodeTooLarge, "%s has %d bytes; %d is the most that can be worked with.", name, info.Size(), w.maxFile)
	}
	return nil
}

// read returns a regular file as it is now.
func (w *workspace) read(name string) (snapshot, error) {
	return w.readIn(w.protected.look(), name)
}

// readIn is read for somebody who has looked already.
func (w *workspace) readIn(l *look, name string) (snapshot, error) {
	f, info, err := w.openRegular(l, name)
	if err != nil {
		return snapshot{}, err
	}
	defer f.Close()
	// The size was checked, but files grow.
	content, err := io.ReadAll(io.LimitReader(f, w.maxFile+1))
	if err != nil {
		return snapshot{}, fileError(name, err)
	}
	if int64(len(content)) > w.maxFile {
		return snapshot{}, errorf(CodeTooLarge, "%s has more than %d bytes, which is the most that can be worked with.", name, w.maxFile)
	}
	return snapshot{content, info}, nil
}

// write replaces the file of that name as a whole, or creates it and the
// directories above it: readers see the old content or the new, never a part.
// The caller holds w.writing.
func (w *workspace) write(ctx context.Context, name string, content []byte, b binding) (created bool, err error) {
	if int64(len(content)) > w.maxFile {
		return false, errorf(CodeTooLarge, "The content has %d bytes; %d is the most that can be written.", len(content), w.maxFile)
	}
	if name == "." {
		return false, errorf(CodeInvalidArguments, "The path is the workspace itself, not a file.")
	}
	parent, err := w.pinParent(name)
	if err != nil {
		return false, err
	}
	defer parent.Close()
	old, err := w.target(parent, name)
	if err != nil {
		return false, err
	}
	if err := b.check(name, old); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, errorf(CodeAborted, "Stopped before %s was written; nothing was changed.", name)
	}
	err = replace(parent, path.Base(name), content, old, b.absent)
	if b.absent && errors.Is(err, fs.ErrExist) {
		return false, errorf(CodeConflict, "%s was created by something else in this moment; nothing was written.", name)
	}
	if err != nil {
		return false, fileError(name, err)
	}
	return old == nil, nil
}

// pinParent opens the directory that the file is in, or is to be in, creating
// it if it is missing. From here on the directory is a file descriptor: links
// that change can't move it.
func (w *workspace) pinParent(name string) (*os.Root, error) {
	existing, missing := path.Dir(name), ""
	for existing != "." {
		if _, err := w.root.Lstat(existing); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = path.Join(path.Base(existing), missing)
		existing = path.Dir(existing)
	}
	if info, err := w.root.Stat(existing); err == nil && !info.IsDir() {
		return nil, fileError(name, unix.ENOTDIR)
	}
	dir, err := w.root.OpenRoot(existing)
	if err != nil {
		return nil, fileError(name, err)
	}
	if err := w.mayWrite(dir, name, path.Join(missing, path.Base(name))); err != nil {
		dir.Close()
		return nil, fileError(name, err)
	}
	if missing == "" {
		return dir, nil
	}
	defer dir.Close()
	if err := dir.MkdirAll(missing, 0o755); err != nil {
		return nil, fileError(name, err)
	}
	parent, err := dir.OpenRoot(missing)
	if err != nil {
		return nil, fileError(name, err)
	}
	return parent, nil
}

// mayWrite checks that rest, below an opened directory, is nothing protected.
func (w *workspace) mayWrite(dir *os.Root, name, rest string) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	real, err := realPath(f)
	if err != nil {
		return err
	}
	if w.protected.covers(filepath.Join(real, rest)) {
		return errProtected(name)
	}
	return w.named(name, filepath.Join(real, rest))
}

// target looks at what stands where the file is to be written: nil if nothing
// does, an error if it is anything but a plain file with this one name.
func (w *workspace) target(parent *os.Root, name string) (os.FileInfo, error) {
	info, err := parent.Lstat(path.Base(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fileError(name, err)
	case info.Mode()&fs.ModeSymlink != 0:
		// The person who approved saw this name, not the one behind it.
		return nil, errorf(CodeNotAllowed, "%s is a symbolic link; write to the file that it points to.", name)
	case info.Mode().IsRegular() && linkCount(info) > 1:
		return nil, errorf(CodeNotAllowed, "%s is a hard link: the same file has another name, perhaps outside the workspace.", name)
	}
	return info, w.regular(name, info)
}

// replace puts content under the name by way of a temporary file beside it,
// with the permissions of the old file if there is one. A fresh one replaces
// nothing: whatever stands there by now stays.
func replace(dir *os.Root, base string, content []byte, old os.FileInfo, fresh bool) (err error) {
	temp := ".approvalbot-" + rand.Text() + ".tmp"
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // less the umask
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			dir.Remove(temp)
		}
	}()
	if old != nil {
		err = f.Chmod(old.Mode().Perm()) // before there is anything to read
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if fresh {
		if err = dir.Link(temp, base); err == nil {
			dir.Remove(temp)
		}
		return err
	}
	return dir.Rename(temp, base)
}

// fileError turns what the file system says into a result for the model. The
// text of an unknown error may name paths of the machine, so only its cause is
// passed on.
func fileError(name string, err error) error {
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, fs.ErrNotExist):
		return errorf(CodeNotFound, "There is no %s in the workspace.", name)
	case errors.Is(err, fs.ErrPermission):
		return errorf(CodeNotAllowed, "The file system doesn't permit access to %s.", name)
	case errors.Is(err, unix.ENOTDIR):
		return errorf(CodeNotFound, "There is no %s in the workspace: a part of the path is not a directory.", name)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return errorf(CodeToolFailed, "The disk is full; %s is unchanged.", name)
	case errors.Is(err, unix.ENAMETOOLONG):
		return errorf(CodeInvalidArguments, "The path is longer than the file system allows.")
	}
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		err = link.Err
	}
	// This is also where a link that leads out ends up: os.Root says "path
	// escapes from parent", and nothing that could be tested for.
	if strings.Contains(err.Error(), "escapes from parent") {
		return errorf(CodeNotAllowed, "%s leads out of the workspace.", name)
	}
	return errorf(CodeToolFailed, "%s can't be used: %s.", name, err)
}
