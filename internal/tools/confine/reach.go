package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// hidden are the real paths of what stays out of reach, and the path of our own program, which may be read but never
// changed. Paths are absolute and clean, links resolved as far as they exist.
type hidden struct {
	paths   []string
	program string
}

// newHidden finds every path that leads to the protected ones: the name itself, where links lead, and where else the same
// files are mounted.
func newHidden(protected []string) (hidden, error) {
	var h hidden
	for _, path := range protected {
		abs, err := filepath.Abs(path)
		if err != nil {
			return h, err
		}
		real := Resolve(abs)
		if err := oneName(real); err != nil {
			return h, err
		}
		h.paths = append(h.paths, abs, real)
	}
	others, err := mountedElsewhere(h.paths)
	if err != nil {
		return h, err
	}
	h.paths = append(h.paths, others...)
	slices.Sort(h.paths)
	h.paths = slices.Compact(h.paths)
	if h.program, err = os.Executable(); err == nil {
		h.program = Resolve(h.program)
	}
	return h, nil
}

// oneName refuses a file that has a second name, by itself or in a directory: nobody knows where that name is, and the
// kernel would let a command in there.
func oneName(path string) error {
	return filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) { // not yet, or not any more
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil || links(info) <= 1 {
			return nil
		}
		return fmt.Errorf("%s has another name (it is a hard link), under which a command could reach it: remove the other name, or copy the file", path)
	})
}

// writable checks a directory in which commands may do what they like.
func (h hidden) writable(path string) (string, error) {
	real, err := h.readable(path)
	if err != nil {
		return "", err
	}
	if Within(real, h.program) {
		return "", fmt.Errorf("%s contains the program itself (%s), which commands could then replace: choose a directory without it", path, h.program)
	}
	return real, nil
}

// readable checks what commands may reach as a whole.
func (h hidden) readable(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q has to be an absolute path", path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, errors.Unwrap(err))
	}
	if !utf8.ValidString(real) {
		return "", fmt.Errorf("%q is not valid UTF-8", real)
	}
	for _, own := range h.paths {
		switch {
		case Within(own, real):
			return "", fmt.Errorf("%s is or lies in %s, which commands may not reach: choose another directory", path, own)
		case Within(real, own):
			return "", fmt.Errorf("%s contains %s, which commands may not reach: choose a directory without it, or move that elsewhere", path, own)
		}
	}
	return real, nil
}

// expand gives the paths that together are the path without what is hidden: the path itself if nothing is, else what is
// left of its entries. Links are left out: what they lead to is reached if it is given itself. Entries that are made
// later are missing, which is the safe side.
func (h hidden) expand(real string) ([]string, error) {
	contains := false
	for _, own := range h.paths {
		if Within(own, real) {
			return nil, nil
		}
		contains = contains || Within(real, own)
	}
	if !contains {
		return []string{real}, nil
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil, reading(real, err)
	}
	var out []string
	for _, entry := range entries {
		if !plain(entry) {
			continue
		}
		paths, err := h.expand(filepath.Join(real, entry.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, paths...)
	}
	return out, nil
}

// public is expand for what every user of the machine may read, and no more. Whole says that the path is that itself.
func (h hidden) public(real string) (paths []string, whole bool, err error) {
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, os.ErrNotExist): // gone meanwhile
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case slices.ContainsFunc(h.paths, func(own string) bool { return Within(own, real) }):
		return nil, false, nil
	case info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0:
		return []string{real}, true, nil
	case !info.IsDir() || info.Mode().Perm()&0o005 != 0o005:
		return nil, false, nil
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return nil, false, reading(real, err)
	}
	whole = !slices.ContainsFunc(h.paths, func(own string) bool { return Within(real, own) })
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			continue
		}
		if !utf8.ValidString(entry.Name()) {
			whole = false
			continue
		}
		below, all, err := h.public(filepath.Join(real, entry.Name()))
		if err != nil {
			return nil, false, err
		}
		paths, whole = append(paths, below...), whole && all
	}
	if whole {
		return []string{real}, true, nil
	}
	return paths, false, nil
}

func plain(entry fs.DirEntry) bool {
	return entry.Type()&fs.ModeSymlink == 0 && utf8.ValidString(entry.Name())
}

// reading is an error of a directory that would have to be gone through, since something hidden lies in it.
func reading(path string, err error) error {
	if errors.Is(err, os.ErrPermission) || errors.Is(err, os.ErrNotExist) {
		return nil // then a command can't read it either
	}
	return fmt.Errorf("%s: %w", path, errors.Unwrap(err))
}

// Within reports whether path is dir or lies below it. Both are clean.
func Within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Resolve follows the links in the part of an absolute path that exists and appends the rest.
func Resolve(path string) string {
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
