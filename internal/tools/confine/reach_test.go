//go:build linux

package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// tree makes files, by their paths below a new directory; a mode may follow the path.
func tree(t *testing.T, files map[string]os.FileMode) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range files {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if mode.IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range files {
		if err := os.Chmod(filepath.Join(base, name), mode.Perm()); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

func below(base string, paths []string) (out []string) {
	for _, path := range paths {
		out = append(out, strings.TrimPrefix(path, base+"/"))
	}
	slices.Sort(out)
	return out
}

func TestExpandLeavesOutWhatIsHidden(t *testing.T) {
	base := tree(t, map[string]os.FileMode{
		"opt/a/x": 0o644, "opt/b/data/journal/db": 0o600, "opt/b/data/other": 0o644, "opt/b/bin/tool": 0o755, "opt/b/.env": 0o600, "opt/c": 0o644,
	})
	if err := os.Symlink(filepath.Join(base, "opt/b/data"), filepath.Join(base, "opt/link")); err != nil {
		t.Fatal(err)
	}
	// The second is named by a link, the last doesn't exist yet.
	h, err := newHidden([]string{filepath.Join(base, "opt/b/.env"), filepath.Join(base, "opt/link/journal"), filepath.Join(base, "opt/b/data/later")})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := h.expand(filepath.Join(base, "opt"))
	if diff := cmp.Diff([]string{"opt/a", "opt/b/bin", "opt/b/data/other", "opt/c"}, below(base, paths)); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	paths, err = h.expand(filepath.Join(base, "opt/b/data/journal"))
	if err != nil || len(paths) > 0 {
		t.Errorf("the hidden itself: %v, %v", paths, err)
	}
	paths, err = h.expand(filepath.Join(base, "opt/a"))
	if err != nil || len(paths) != 1 {
		t.Errorf("what hides nothing: %v, %v", paths, err)
	}
}

func TestPublicIsWhatEverybodyMayRead(t *testing.T) {
	base := tree(t, map[string]os.FileMode{
		"etc/passwd": 0o644, "etc/shadow": 0o640, "etc/ssl/certs/ca": 0o644, "etc/ssl/private/key": 0o644, "etc/ssl/private": os.ModeDir | 0o700,
		"etc/ssh/config": 0o644, "etc/ssh/host_key": 0o600, "etc/apt/list": 0o644, "etc/bot/policy": 0o644, "etc/bot/other": 0o644,
	})
	h, err := newHidden([]string{filepath.Join(base, "etc/bot/policy")})
	if err != nil {
		t.Fatal(err)
	}
	paths, whole, err := h.public(filepath.Join(base, "etc"))
	want := []string{"etc/apt", "etc/bot/other", "etc/passwd", "etc/ssh/config", "etc/ssl/certs"}
	if diff := cmp.Diff(want, below(base, paths)); err != nil || whole || diff != "" {
		t.Errorf("%v, whole %v %s", err, whole, diff)
	}
	if paths, whole, err := h.public(filepath.Join(base, "etc/apt")); err != nil || !whole || len(paths) != 1 {
		t.Errorf("a public directory: %v, %v, %v", paths, whole, err)
	}
}

// What only our own user may read is none of a command's business, also where administrators install programs.
func TestOptIsPublicOnly(t *testing.T) {
	base := tree(t, map[string]os.FileMode{"opt/tool/bin/tool": 0o755, "opt/tool/.env.old": 0o600, "opt/backup": os.ModeDir | 0o700, "opt/backup/journal.db": 0o644})
	defer func(read, public []string) { systemRead, systemPublic = read, public }(systemRead, systemPublic)
	in := func(paths []string) (out []string) {
		for _, path := range paths {
			if path == "/opt" {
				out = append(out, filepath.Join(base, path))
			}
		}
		return out
	}
	systemRead, systemPublic = in(systemRead), in(systemPublic)
	var s Sandbox
	if err := s.system(hidden{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"opt/tool/bin"}, below(base, s.brief.Read)); diff != "" {
		t.Error(diff)
	}
}

// Whatever is hidden, no path that is given contains it, lies in it, or is it; and nothing else is lost.
func TestExpandProperty(t *testing.T) {
	files := map[string]os.FileMode{}
	for _, a := range []string{"a", "ab", "b"} {
		for _, b := range []string{"a", "ab", "b"} {
			for _, c := range []string{"a", "ab", "b"} {
				files[a+"/"+b+"/"+c] = 0o644
			}
		}
	}
	base := tree(t, files)
	part := rapid.SampledFrom([]string{"a", "ab", "b", "none"})
	rapid.Check(t, func(t *rapid.T) {
		var own []string
		for _, parts := range rapid.SliceOfN(rapid.SliceOfN(part, 1, 3), 0, 3).Draw(t, "hidden") {
			own = append(own, filepath.Join(base, strings.Join(parts, "/")))
		}
		paths, err := hidden{paths: own}.expand(base)
		if err != nil {
			t.Fatal(err)
		}
		for file := range files {
			file = filepath.Join(base, file)
			covered := func(dirs []string) bool {
				return slices.ContainsFunc(dirs, func(dir string) bool { return Within(dir, file) })
			}
			if covered(paths) == covered(own) {
				t.Fatalf("%s: given %v, hidden %v", file, covered(paths), covered(own))
			}
		}
	})
}

// The same files, mounted at other places, are found there.
func TestElsewhere(t *testing.T) {
	mounts := parseMounts(`21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 21 254:0 /srv/bot /usr/share/bot rw - ext4 /dev/vda rw
23 21 254:0 /srv/bot/data/journal /opt/my\040journal rw - ext4 /dev/vda rw
24 21 0:30 / /data rw - tmpfs tmpfs rw
25 21 0:30 /journal /usr/lib/j rw - tmpfs tmpfs rw
26 21 0:31 / /srv/bot/data/journal/inner rw - tmpfs tmpfs rw
broken`)
	for path, want := range map[string][]string{
		"/srv/bot/data/journal":         {"/usr/share/bot/data/journal", "/opt/my journal"},
		"/srv/bot/data":                 {"/usr/share/bot/data", "/opt/my journal"},
		"/data/journal":                 {"/usr/lib/j"},
		"/data/journal/db":              {"/usr/lib/j/db"},
		"/usr/share/bot/data/x":         {"/srv/bot/data/x"},
		"/srv/bot/data/journal/inner/x": nil,
		"/etc/bot":                      nil,
	} {
		if diff := cmp.Diff(want, elsewhere(mounts, []string{path})); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// Whatever a path holds, it is read as it was before the kernel escaped it.
func FuzzParseMounts(f *testing.F) {
	f.Add("/srv/my bot", "/data")
	f.Add("\\040\t", "\n")
	f.Fuzz(func(t *testing.T, root, point string) {
		if root == "" || point == "" || strings.ContainsAny(root+point, "\v\f\r\u0085\u00a0") || strings.ToValidUTF8(root+point, "") != root+point {
			return // the kernel leaves these as they are; nobody mounts there
		}
		escape := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace
		got := parseMounts("22 21 254:0 " + escape(root) + " " + escape(point) + " rw - ext4 /dev/vda rw\n")
		if len(strings.Fields(escape(root)+escape(point))) > 1 {
			return
		}
		if want := (mount{"254:0", root, point}); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
