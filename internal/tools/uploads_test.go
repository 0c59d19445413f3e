package tools

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestUploadName(t *testing.T) {
	for name, want := range map[string]string{
		"report.pdf": "report.pdf", "../../etc/passwd": "passwd", `C:\Users\a b.txt`: "a_b.txt", "": "file", ".bashrc": "bashrc",
		"-rf": "rf", "数据 2026.csv": "数据_2026.csv", "a\u202Egnp.exe": "agnp.exe", "..": "file", "x\x00y": "x_y", "a/": "file",
		"name.": "name", strings.Repeat("é", 200) + ".tar": strings.Repeat("é", 58) + ".tar",
	} {
		if got := UploadName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzUploadName(f *testing.F) {
	for _, s := range []string{"a.b", "../x", "\xff", ".", "....", "a\nb", "\u200bx", "a." + strings.Repeat("x", 300), "/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := UploadName(s)
		hides := strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '/' || r == '\\' })
		if got == "" || len(got) > maxUploadName || !utf8.ValidString(got) || got[0] == '.' || got[0] == '-' || hides || !filepath.IsLocal(got) || path.Base(got) != got {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}

func uploadTo(t *testing.T, b *Builtin, dir, name, content string) Uploaded {
	t.Helper()
	up, err := b.Upload(context.Background(), dir, name, func(w io.Writer) error {
		_, err := io.WriteString(w, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return up
}

func TestUpload(t *testing.T) {
	dir := t.TempDir()
	b, err := OpenBuiltin(Options{Workspace: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	one, two := uploadTo(t, b, "1.2", "a b.txt", "one"), uploadTo(t, b, "1.2", "a/b/a_b.txt", "two")
	if one.Path != "uploads/1.2/a_b.txt" || two.Path != "uploads/1.2/a_b-2.txt" || one.Size != 3 || len(one.SHA256) != 64 {
		t.Errorf("%+v, %+v", one, two)
	}
	for p, want := range map[string]string{one.Path: "one", two.Path: "two"} {
		if got, err := os.ReadFile(filepath.Join(dir, p)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	broken := errors.New("the line is dead")
	if _, err := b.Upload(context.Background(), "1.2", "c", func(w io.Writer) error { io.WriteString(w, "half"); return broken }); !errors.Is(err, broken) {
		t.Errorf("a broken download: %v", err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "uploads", "1.2"))
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Nothing that is there leads an upload somewhere else, or lets it replace something.
func TestUploadStaysInTheWorkspace(t *testing.T) {
	outside := t.TempDir()
	for name, prepare := range map[string]func(dir string) error{
		"the directory is a link": func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "uploads")) },
		"the message's is a link": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "uploads"), 0o755), os.Symlink(outside, filepath.Join(dir, "uploads", "1.2")))
		},
		"the directory is a file": func(dir string) error { return os.WriteFile(filepath.Join(dir, "uploads"), nil, 0o644) },
	} {
		dir := t.TempDir()
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		b, err := OpenBuiltin(Options{Workspace: dir})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Upload(context.Background(), "1.2", "a", func(w io.Writer) error { return nil })
		var refused *Error
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
		b.Close()
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("something was put outside: %v, %v", left, err)
	}
	dir := t.TempDir()
	b, err := OpenBuiltin(Options{Workspace: dir, Protected: []string{filepath.Join(dir, "uploads")}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.Upload(context.Background(), "1.2", "a", func(w io.Writer) error { return nil }); err == nil {
		t.Error("an upload into what is protected")
	}
}
