package confine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// links is how many names a file has.
func links(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

// A mount is a part of a file system, and where it is seen.
type mount struct {
	device string // the file system
	root   string // which part of it
	point  string // where
}

// mountedElsewhere gives the other paths under which the same files are seen: a part of a file system can be mounted more
// than once.
func mountedElsewhere(paths []string) ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("what is mounted where can't be read: %w", err)
	}
	return elsewhere(parseMounts(string(text)), paths), nil
}

func elsewhere(mounts []mount, paths []string) (out []string) {
	for _, path := range paths {
		at, ok := mountOf(mounts, path)
		if !ok {
			continue
		}
		inside := filepath.Join(at.root, strings.TrimPrefix(path, at.point))
		for _, m := range mounts {
			if m == at || m.device != at.device {
				continue
			}
			switch {
			case Within(m.root, inside):
				out = append(out, filepath.Join(m.point, strings.TrimPrefix(inside, m.root)))
			case Within(inside, m.root): // a part of it
				out = append(out, m.point)
			}
		}
	}
	return out
}

// mountOf is the mount that a path lies in: the one with the longest point, the last of several at one point.
func mountOf(mounts []mount, path string) (found mount, ok bool) {
	for _, m := range mounts {
		if Within(m.point, path) && (!ok || len(m.point) >= len(found.point)) {
			found, ok = m, true
		}
	}
	return found, ok
}

// parseMounts reads the kernel's list; see proc_pid_mountinfo(5).
func parseMounts(text string) (out []mount) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		out = append(out, mount{fields[2], unescape(fields[3]), unescape(fields[4])})
	}
	return out
}

// unescape undoes the octal escapes of space, tab, line break and backslash.
func unescape(s string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, `\`)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		code, err := strconv.ParseUint(rest[:min(3, len(rest))], 8, 8)
		if err != nil || len(rest) < 3 {
			out.WriteByte('\\')
			s = rest
			continue
		}
		out.WriteByte(byte(code))
		s = rest[3:]
	}
}
