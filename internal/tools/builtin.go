package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"approvalbot/internal/language"
	"approvalbot/internal/tools/confine"
	"approvalbot/internal/tools/process"
)

// Options say where the built-in tools work and what they may not touch.
type Options struct {
	// Workspace is the directory that the tools work in. It has to exist.
	Workspace string
	// Protected are files and directories of the program itself, which the file
	// tools refuse by whatever name they are reached. They need not exist yet.
	Protected []string
	// Shell says whether there is a shell tool; "" means off.
	Shell ShellMode
	// ShellRead and ShellWrite are files and directories, by absolute paths, that
	// confined commands may also read, or also change. ShellNetwork lets them
	// use the network.
	ShellRead, ShellWrite []string
	ShellNetwork          bool
	// Path is the PATH of commands. Entries that aren't absolute are left out;
	// empty means the usual directories of a system.
	Path string
	// TempDir is the TMPDIR of commands; empty means the system's. A confined
	// command gets a directory of its own in it.
	TempDir string
	// MaxFile is the size in bytes up to which files are read and written; 0
	// means 4 MiB.
	MaxFile int64
	// HTTP says what http_request may reach; nil: there is no such tool.
	HTTP *HTTPOptions
	// Messenger reaches people; nil: there are no tools that do.
	Messenger Messenger
	// MaxOutput is how many bytes of a command's output are kept; 0 means
	// 32 KiB.
	MaxOutput int
	// Language is what people read on cards; models read English.
	Language language.Language
}

const (
	defaultPath      = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	defaultMaxFile   = 4 << 20
	defaultMaxOutput = 32 << 10
)

// Builtin is the tools that come with the program. Close it when no call is
// running any more.
type Builtin struct {
	w     *workspace
	tools []Tool
	shell *shell // nil: there is none
}

// OpenBuiltin opens the workspace and returns the tools that work in it.
func OpenBuiltin(o Options) (*Builtin, error) {
	if o.Shell == "" {
		o.Shell = ShellOff
	}
	if _, err := ParseShellMode(string(o.Shell)); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	if o.MaxFile <= 0 {
		o.MaxFile = defaultMaxFile
	}
	w, err := openWorkspace(o.Workspace, o.Protected, o.MaxFile)
	if err != nil {
		return nil, err
	}
	w.lang = o.Language
	b := &Builtin{w: w, tools: []Tool{&readFile{w}, &listFiles{w}, &searchFiles{w}, &writeFile{w}, &editFile{w}}}
	if o.Shell != ShellOff {
		if b.shell, err = newShell(w.dir, o); err != nil {
			b.Close()
			return nil, err
		}
		b.tools = append(b.tools, b.shell)
	}
	if err := b.beyond(o); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// beyond adds the tools that reach beyond the workspace.
func (b *Builtin) beyond(o Options) error {
	if o.HTTP != nil {
		t, err := newHTTPRequest(*o.HTTP)
		if err != nil {
			return err
		}
		t.lang = o.Language
		b.tools = append(b.tools, t)
	}
	if o.Messenger != nil {
		b.tools = append(b.tools, &lookupUser{o.Messenger, o.Language}, &postMessage{o.Messenger, o.Language})
	}
	return nil
}

// Tools returns the tools, in the order in which they should be offered.
func (b *Builtin) Tools() []Tool { return b.tools }

// Dir returns the workspace's real path.
func (b *Builtin) Dir() string { return b.w.dir }

// ShellNote says in English what holds commands, as it stands on their cards; ""
// without a shell.
func (b *Builtin) ShellNote() string {
	if b.shell == nil {
		return ""
	}
	return b.shell.held()
}

// Close lets go of the workspace.
func (b *Builtin) Close() error { return b.w.root.Close() }

// newShell makes the shell that the options ask for. One that can't be confined
// as it should is an error.
func newShell(dir string, o Options) (*shell, error) {
	process.KeepDescriptors()
	if o.TempDir == "" {
		o.TempDir = os.TempDir()
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultMaxOutput
	}
	t := &shell{dir: dir, env: cleanEnv(dir, o), maxOutput: o.MaxOutput, temp: o.TempDir, lang: o.Language}
	t.write, t.network, t.user = o.ShellWrite, o.ShellNetwork, userName()
	if o.Shell != ShellConfined {
		return t, nil
	}
	var err error
	t.sandbox, err = confine.New(confine.Options{
		Workspace: dir, Protected: o.Protected, Read: o.ShellRead, Write: o.ShellWrite, Network: o.ShellNetwork,
	})
	if err != nil {
		return nil, err
	}
	return t, t.try()
}

// cleanEnv is the whole environment of a command. It is made from nothing, so
// that no token of ours can be in it.
func cleanEnv(dir string, o Options) []string {
	var entries []string
	for _, entry := range filepath.SplitList(o.Path) {
		// A relative entry would let a file in the workspace pose as a program.
		if filepath.IsAbs(entry) {
			entries = append(entries, entry)
		}
	}
	path := strings.Join(entries, ":")
	if path == "" {
		path = defaultPath
	}
	return []string{"PATH=" + path, "HOME=" + dir, "PWD=" + dir, "LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + o.TempDir}
}
