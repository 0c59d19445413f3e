// Package profiles says what is different in some channels: what the agent is for there, which model answers, in which
// directory it works, and whether each conversation has a directory of its own.
//
// # Life of a profile
//
// [Load] reads a file at the start and names everything that is wrong with it. When a run begins, [File.For] finds the
// profile of its place: that of the channel, in direct messages that for direct messages, else the default one; where
// there is none, the settings hold as they are. What a profile doesn't say, the settings say.
//
// # Invariants
//
//   - A channel has one profile at most, and so have direct messages; one profile at most is the default.
//   - A profile only tightens: its approval policy and sandbox count where they are stricter than the settings'.
//   - The directory of a conversation is a function of its profile and the conversation's name, so a restart finds it, and
//     it lies below the profile's workspace whatever the name is ([Profile.Dir]).
package profiles

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strings"

	"approvalbot/internal/policy"
)

// A Profile is what is different in some places. What is empty, the settings say.
type Profile struct {
	Name         string
	Channels     []string // C… or G…
	Direct       bool     // in direct messages
	Default      bool     // wherever no other profile holds, runs over HTTP included
	Instructions string   // what the agent is for there
	File         string   // where the instructions were read from; empty: they stand in the profile
	Model        string   // as APPROVALBOT_MODEL
	Workspace    string   // absolute
	Make         bool     // the workspace is made where it isn't there
	Own          bool     // each conversation works in a directory of its own below the workspace
	Settings     policy.Settings

	line int
}

// A File is the profiles of a file. The nil File has none.
type File struct {
	Name     string
	profiles []Profile
}

// All are the profiles, in the file's order.
func (f *File) All() []Profile {
	if f == nil {
		return nil
	}
	return slices.Clone(f.profiles)
}

// For is the profile that holds in a channel; empty: for runs without a place in Slack. False: none does.
func (f *File) For(channel string) (Profile, bool) {
	all := f.All()
	for _, holds := range []func(Profile) bool{
		func(p Profile) bool { return slices.Contains(p.Channels, channel) },
		func(p Profile) bool { return p.Direct && strings.HasPrefix(channel, "D") },
		func(p Profile) bool { return p.Default },
	} {
		if i := slices.IndexFunc(all, holds); i >= 0 {
			return all[i], true
		}
	}
	return Profile{}, false
}

// Dir is the directory that a conversation works in; empty: the profile names none.
func (p Profile) Dir(session string) string {
	if p.Workspace == "" || !p.Own {
		return p.Workspace
	}
	return filepath.Join(p.Workspace, slug(session))
}

// Overlaps tells whether the directories that two profiles work in lie one in the other. Profiles may share a workspace,
// unless in one of them conversations are kept apart in it.
func (p Profile) Overlaps(other Profile) bool {
	if p.Workspace == "" || other.Workspace == "" {
		return false
	}
	a, b := real(p.Workspace), real(other.Workspace)
	if a == b {
		return p.Own != other.Own
	}
	return within(a, b) || within(b, a)
}

// within tells whether a path is below a directory.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// real is a path without the links in it. Of one that isn't there yet, the directories that are there count.
func real(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if r, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(r, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// Elsewhere tells whether some runs work in the settings' workspace.
func (f *File) Elsewhere() bool {
	all := f.All()
	return !slices.ContainsFunc(all, func(p Profile) bool { return p.Default }) ||
		slices.ContainsFunc(all, func(p Profile) bool { return p.Workspace == "" })
}

// slug names a directory after a conversation: the readable end of its name, and enough of a hash to tell it from every
// other. There is nothing in it that a path could be made of.
func slug(session string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, session)
	if len(readable) > slugMost {
		readable = readable[len(readable)-slugMost:]
	}
	sum := sha256.Sum256([]byte(session))
	return cmp.Or(strings.Trim(readable, "-"), "session") + "-" + hex.EncodeToString(sum[:8])
}

const slugMost = 40
