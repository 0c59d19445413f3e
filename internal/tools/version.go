package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// # Versions
//
// A file's version is a hash of its whole content. read_file prints it, and
// so does every change. A change names the version that it was made for, so what
// people approve is the change of that content and no other; it is checked when
// the change is carried out, on the file that is then open. Nothing is kept
// between the calls, so a restart forgets nothing.

const (
	versionPrefix = "sha256:"
	// versionDigits are so many that nobody finds two contents with the same ones: with
	// 12, an agent that may write could have one of them approved and edit the other.
	versionDigits = 32

	// absent is the version of a file that isn't there.
	absent = "none"
)

// versionOf names a content.
func versionOf(content []byte) string {
	sum := sha256.Sum256(content)
	return versionPrefix + hex.EncodeToString(sum[:])[:versionDigits]
}

func versionSchema(description, pattern string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Description: description, Pattern: pattern}
}

// A snapshot is a file as it was read.
type snapshot struct {
	content []byte
	info    os.FileInfo
}

func (s snapshot) version() string { return versionOf(s.content) }

// still reports whether the file that stands there now is the one that was read,
// as far as that can be seen without reading it again.
func (s snapshot) still(now os.FileInfo) bool {
	return now != nil && os.SameFile(s.info, now) && s.info.Size() == now.Size() && s.info.ModTime().Equal(now.ModTime())
}

// A binding is the version that a change is made for. The zero value is any.
type binding struct {
	absent bool      // nothing may stand there
	seen   *snapshot // this has to stand there
}

// check compares what the change is bound to with what stands there.
func (b binding) check(name string, now os.FileInfo) error {
	switch {
	case b.absent && now != nil:
		return errorf(CodeConflict, "%s exists already; nothing was changed. Read it, and name its version to replace it.", name)
	case b.seen != nil && !b.seen.still(now):
		return errorf(CodeConflict, "%s was changed by something else in this moment; nothing was written. Read it again.", name)
	}
	return nil
}

// bind reads the file and makes sure that it is in this version.
func (w *workspace) bind(name, version string) (binding, error) {
	switch version {
	case "":
		return binding{}, nil
	case absent:
		return binding{absent: true}, nil
	}
	s, err := w.read(name)
	if err != nil {
		return binding{}, err
	}
	if now := s.version(); now != version {
		return binding{}, errorf(CodeConflict,
			"%s is not in version %s any more: its version is %s now. Nothing was changed. Read it again, and make the change for what it says now.",
			name, strings.TrimSpace(version), now)
	}
	return binding{seen: &s}, nil
}
