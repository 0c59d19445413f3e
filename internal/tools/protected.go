package tools

import (
	"os"
	"path/filepath"
	"strings"
)

// protected is the program's own files and directories: the journal, the
// policy, tokens, settings. The file tools neither read nor write what is or
// lies in one of them, by whatever name or link they get there.
//
// Two questions are asked, because each misses something. By name: the path,
// links resolved, also where nothing exists yet. By identity: the file or any
// directory above it is the same inode, which also finds bind mounts and hard
// links.
type protected []string

// newProtected makes the paths absolute. They need not exist.
func newProtected(paths []string) (protected, error) {
	var p protected
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		p = append(p, abs)
	}
	return p, nil
}

// covers reports whether the real path (absolute, links resolved, existing or
// not) is protected or lies in something that is.
func (p protected) covers(real string) bool {
	for _, path := range p {
		if within(path, real) || within(resolveExisting(path), real) {
			return true
		}
	}
	for dir := real; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && p.same(info) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// same reports whether info is one of the protected paths itself.
func (p protected) same(info os.FileInfo) bool {
	for _, path := range p {
		if own, err := os.Stat(path); err == nil && os.SameFile(own, info) {
			return true
		}
	}
	return false
}

// links reports whether a file that has several names has one of them in a
// protected directory. What can't be looked through counts as a yes.
func (p protected) links(info os.FileInfo) bool {
	for _, path := range p {
		own, err := os.Stat(path)
		if err != nil || !own.IsDir() {
			continue
		}
		found := false
		err = filepath.WalkDir(path, func(_ string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if inside, err := entry.Info(); err == nil && os.SameFile(inside, info) {
				found = true
				return filepath.SkipAll
			}
			return nil
		})
		if found || err != nil {
			return true
		}
	}
	return false
}

// within reports whether path is dir or lies below it. Both are clean.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// resolveExisting resolves the links in the part of an absolute path that
// exists and appends the rest.
func resolveExisting(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
