package tools

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What people attach to their messages comes into the workspace as files of its own directory. It goes the way of every
// file that a tool writes: below the workspace whatever links there are, nothing protected, nothing that stands there
// already. A file is there as a whole or not at all.

// UploadsDir is the directory of the workspace that they are put into, one below it for each message.
const UploadsDir = "uploads"

// maxUploadName is how long a name may be, in bytes; file systems take 255.
const maxUploadName = 120

// UploadName makes a name of one that somebody gave a file: one that every file system takes, in which nothing hides and
// that leads nowhere. Two names may become one; [Builtin.Upload] tells them apart.
func UploadName(name string) string {
	name = strings.ReplaceAll(strings.ToValidUTF8(name, "_"), `\`, "/")
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), strings.ContainsRune("-_.+@", r):
			return r
		case unicode.IsMark(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return '_'
	}, name)
	name = strings.TrimLeft(name, ".-") // no hidden file, no option
	stem, ext := name, path.Ext(name)
	if len(ext) > 20 || len(ext) < 2 {
		ext = ""
	}
	stem = strings.TrimRight(clipBytes(strings.TrimSuffix(stem, ext), maxUploadName-len(ext)), ". ")
	if stem == "" {
		stem = "file"
	}
	return stem + ext
}

// clipBytes is the beginning of s, whole characters of at most so many bytes.
func clipBytes(s string, most int) string {
	for len(s) > most {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}

// numbered is the n-th name of those that have become one.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}

// An Uploaded is a file that was put into the workspace.
type Uploaded struct {
	Path   string // relative to the workspace
	Size   int64
	SHA256 string // hex
}

// uploadTries is how many files of one message may have one name.
const uploadTries = 100

// Upload puts a file into uploads/DIR, under a name made of the one that it was given. What fill writes is its content; an
// error of fill's is returned as it is, and leaves nothing behind. Other errors are [*Error]s.
func (b *Builtin) Upload(ctx context.Context, dir, name string, fill func(io.Writer) error) (Uploaded, error) {
	dir = path.Join(UploadsDir, UploadName(dir))
	name = UploadName(name)
	parent, err := b.w.pinParent(path.Join(dir, name))
	if err != nil {
		return Uploaded{}, err
	}
	defer parent.Close()
	temp := ".approvalbot-" + rand.Text() + ".tmp"
	size, sum, err := fillFile(parent, temp, path.Join(dir, name), fill)
	defer parent.Remove(temp) // after it got its name, or none
	if err != nil {
		return Uploaded{}, err
	}
	if ctx.Err() != nil {
		return Uploaded{}, errorf(CodeAborted, "Stopped before %s was written; nothing was changed.", name)
	}
	for n := 1; n <= uploadTries; n++ {
		own := numbered(name, n)
		err := parent.Link(temp, own) // which replaces nothing
		switch {
		case err == nil:
			return Uploaded{Path: path.Join(dir, own), Size: size, SHA256: sum}, nil
		case !errors.Is(err, fs.ErrExist):
			return Uploaded{}, fileError(path.Join(dir, own), err)
		}
	}
	return Uploaded{}, errorf(CodeConflict, "There are too many files called %s in %s.", name, dir)
}

// fillFile makes a file that wasn't there, for one that will be called name, and hands its content to whoever writes it.
func fillFile(dir *os.Root, temp, name string, fill func(io.Writer) error) (size int64, sum string, err error) {
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return 0, "", fileError(name, err)
	}
	hash := sha256.New()
	err = fill(io.MultiWriter(f, hash))
	if err == nil {
		if err = f.Sync(); err != nil {
			err = fileError(name, err)
		}
	}
	info, statErr := f.Stat()
	if closeErr := f.Close(); err == nil && errors.Join(statErr, closeErr) != nil {
		err = fileError(name, errors.Join(statErr, closeErr))
	}
	if err != nil {
		return 0, "", err
	}
	return info.Size(), hex.EncodeToString(hash.Sum(nil)), nil
}
