package tools

import (
	"os"
	"path/filepath"
	"slices"

	"approvalbot/internal/tools/confine"
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
func (p protected) covers(real string) bool { return p.look().covers(real) }

// A look is what is protected, as it was when somebody looked. It answers for
// many files at the price of one, and lives no longer than one call. It is used
// by one goroutine.
type look struct {
	paths []string        // as they were given, and with links resolved
	own   []os.FileInfo   // of those that exist
	dirs  map[string]bool // by identity: directories that were asked about

	gathered bool // of the files in protected directories
	failed   bool
	inside   []os.FileInfo
}

func (p protected) look() *look {
	l := &look{dirs: map[string]bool{}}
	for _, path := range p {
		l.paths = append(l.paths, path, confine.Resolve(path))
		if info, err := os.Stat(path); err == nil {
			l.own = append(l.own, info)
		}
	}
	return l
}

func (l *look) covers(real string) bool {
	for _, path := range l.paths {
		if confine.Within(path, real) {
			return true
		}
	}
	if info, err := os.Stat(real); err == nil && l.same(info) {
		return true
	}
	return real != filepath.Dir(real) && l.above(filepath.Dir(real))
}

// above reports whether a directory, or one above it, is a protected one.
func (l *look) above(dir string) bool {
	if is, known := l.dirs[dir]; known {
		return is
	}
	info, err := os.Stat(dir)
	is := err == nil && l.same(info) || dir != filepath.Dir(dir) && l.above(filepath.Dir(dir))
	l.dirs[dir] = is
	return is
}

// same reports whether info is one of the protected paths itself.
func (l *look) same(info os.FileInfo) bool {
	return slices.ContainsFunc(l.own, func(own os.FileInfo) bool { return os.SameFile(own, info) })
}

// links reports whether a file that has several names has one of them in a
// protected directory. What can't be looked through counts as a yes.
func (l *look) links(info os.FileInfo) bool {
	if !l.gathered {
		l.gather()
	}
	return l.failed || slices.ContainsFunc(l.inside, func(own os.FileInfo) bool { return os.SameFile(own, info) })
}

// gather notes the files in protected directories that have several names: no
// other can have one outside.
func (l *look) gather() {
	l.gathered = true
	for i := 1; i < len(l.paths); i += 2 {
		info, err := os.Stat(l.paths[i])
		if err != nil || !info.IsDir() {
			continue
		}
		err = filepath.WalkDir(l.paths[i], func(_ string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if info, err := entry.Info(); err == nil && linkCount(info) > 1 {
				l.inside = append(l.inside, info)
			}
			return nil
		})
		l.failed = l.failed || err != nil
	}
}
