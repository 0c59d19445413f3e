package actions

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"approvalbot/internal/language"
	"approvalbot/internal/tools/process"
)

// A Machine is what actions are given of the machine that they run on.
type Machine struct {
	// Language is what people read on cards; models read English.
	Language language.Language
	// Path is the PATH in which programs are found, and which they get. Entries
	// that aren't absolute are left out; empty means the usual directories.
	Path string
	// Home is the HOME of programs. Where it is empty or in the workspace they get
	// /, in which they find nothing of anybody's.
	Home string
	// TempDir is the TMPDIR of programs; empty means the system's.
	TempDir string
	// Workspace is where the agent can write. No program may be in it. Empty means
	// that there is none.
	Workspace string
	// Writable are the files and directories beside it that commands of the agent may
	// change, by absolute paths. What holds of the workspace holds of them.
	Writable []string
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// A place is where an action runs. It is part of the action's definition, so that an approval holds for this program in
// this directory and no other.
type place struct {
	Program string   `json:"program"` // by its path
	Dir     string   `json:"dir"`
	Env     []string `json:"env"` // all of it but the secrets
	secrets []string // the values of the moment in which it was prepared, to be taken out of the output
}

// Prepare finds on this machine what the actions need, and tells all that is missing at once, as an *[Error]. It is
// called once, before any call.
func (f *File) Prepare(m Machine) error {
	process.KeepDescriptors()
	m = m.complete()
	var p problems
	for _, a := range f.actions {
		p.action = a.name
		a.place, a.lang = m.prepare(&p, a), m.Language
	}
	f.share()
	if err := p.in(f.Name); err != nil {
		for _, a := range f.actions {
			a.place = nil
		}
		return err
	}
	return nil
}

// share lets every action take out the secrets of all: a program may well come across another one's. Short ones would be
// found where they aren't.
func (f *File) share() {
	var all []string
	for _, a := range f.actions {
		for _, s := range a.place.secrets {
			if utf8.RuneCountInString(s) >= safeSecret && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	for _, a := range f.actions {
		a.place.secrets = append(a.place.secrets, all...)
	}
}

func (m Machine) complete() Machine {
	var entries []string
	for _, entry := range filepath.SplitList(m.Path) {
		if filepath.IsAbs(entry) && m.writes(entry) == "" {
			entries = append(entries, entry)
		}
	}
	m.Path = cmp.Or(strings.Join(entries, ":"), defaultPath)
	if !filepath.IsAbs(m.Home) || m.writes(m.Home) != "" {
		m.Home = "/"
	}
	m.TempDir = cmp.Or(m.TempDir, os.TempDir())
	return m
}

// writes says in which place the agent can change a path, in words; "" if it can't. Whatever can't be looked at is judged
// by its name.
func (m Machine) writes(path string) (where string) {
	real := func(path string) string {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			return r
		}
		return filepath.Clean(path)
	}
	path = real(path)
	for _, place := range append([]string{m.Workspace}, m.Writable...) {
		dir := real(place)
		switch {
		case place == "" || path != dir && !strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"):
			continue
		case place == m.Workspace:
			return "the workspace"
		}
		return place
	}
	return ""
}

func (m Machine) prepare(p *problems, a *Action) *place {
	pl := &place{Dir: cmp.Or(a.dir, "/")}
	if a.dir == inWorkspace {
		pl.Dir = m.Workspace // it is made where there is none
	} else if info, err := os.Stat(pl.Dir); err != nil || !info.IsDir() {
		p.add(a.line, "dir: there is no directory %s here", pl.Dir)
	}
	line := a.run[0].line
	program, err := m.find(a.program())
	if err != nil {
		p.add(line, "%s", err)
	}
	pl.Program = program
	m.checkScripts(p, a, pl.Dir)
	pl.Env = []string{"PATH=" + m.Path, "HOME=" + m.Home, "PWD=" + pl.Dir, "LANG=C.UTF-8", "TERM=dumb", "TMPDIR=" + m.TempDir}
	for _, v := range a.env {
		pl.Env = append(pl.Env, v.name+"="+v.value)
	}
	for _, s := range a.secrets {
		value, err := s.resolve()
		if err != nil {
			p.add(s.line, "the secret %s: %s", s.name, err)
			continue
		}
		pl.secrets = append(pl.secrets, value)
	}
	return pl
}

// checkScripts refuses what a program is to run, if the agent could change it: bash deploy.sh, sudo /srv/workspace/x.
func (m Machine) checkScripts(p *problems, a *Action, dir string) {
	name := family(a.program())
	if evaluators[name] == nil && !slices.Contains(wrappers, name) {
		return
	}
	each(a.run, func(_ group, arg argument) {
		path, fixed := arg.literal()
		if !fixed || path == "" {
			return
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return
		}
		if where := m.writes(path); where != "" {
			p.add(arg.line, "%s is in %s, where the agent could change it; put it somewhere else", path, where)
		}
	})
}

// find gives the path of a program that can be run.
func (m Machine) find(program string) (string, error) {
	candidates := []string{program}
	if !filepath.IsAbs(program) {
		candidates = nil
		for _, dir := range filepath.SplitList(m.Path) {
			candidates = append(candidates, filepath.Join(dir, program))
		}
	}
	for _, path := range candidates {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || unix.Access(path, unix.X_OK) != nil {
			continue
		}
		if where := m.writes(path); where != "" {
			return "", fmt.Errorf("the program %s is in %s, where the agent could change it; put it somewhere else", path, where)
		}
		return path, nil
	}
	if filepath.IsAbs(program) {
		return "", fmt.Errorf("there is no program %s here, or it can't be executed", program)
	}
	return "", fmt.Errorf("there is no program %s in PATH (%s); install it, or name it by its path", program, m.Path)
}

// Advice is what isn't wrong with the secrets of this machine, but could be better.
func (f *File) Advice() []Problem {
	var p problems
	for _, a := range f.actions {
		p.action = a.name
		for _, s := range a.secrets {
			value, err := s.resolve()
			if err == nil && utf8.RuneCountInString(value) < safeSecret {
				p.add(s.line, "the secret %s has less than %d characters: it is taken out of what the program writes, but nowhere else", s.name, safeSecret)
			}
			if info, err := os.Stat(s.file); s.file != "" && err == nil && info.Mode().Perm()&0o004 != 0 {
				p.add(s.line, "every user of this machine can read %s: chmod 600 %[1]s", s.file)
			}
		}
	}
	return p.list
}
