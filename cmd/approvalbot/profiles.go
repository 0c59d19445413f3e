package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/profiles"
	"approvalbot/internal/tools"
)

// profileFile reads the profiles; none without a file.
func (s *Settings) profileFile() (*profiles.File, error) {
	if s.Profiles == "" {
		return nil, nil
	}
	f, err := profiles.Load(s.Profiles, func(name string) error {
		_, err := model.Open(name, s.modelOptions(nil))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("APPROVALBOT_PROFILES: %w", err)
	}
	for _, p := range f.All() {
		if err := s.tightens(p); err != nil {
			return nil, fmt.Errorf("APPROVALBOT_PROFILES: %w", err)
		}
		if s.Workspace != "" && f.Elsewhere() && (profiles.Profile{Workspace: s.Workspace}).Overlaps(p) {
			return nil, fmt.Errorf("APPROVALBOT_PROFILES: the workspace of the profile %s and APPROVALBOT_WORKSPACE lie one in the other: who works in the outer one reaches all of the inner one. Put them side by side", p.Name)
		}
	}
	return f, nil
}

// tightens tells whether a profile is as strict as the settings are.
func (s *Settings) tightens(p profiles.Profile) error {
	if a := p.Settings.ApprovalPolicy; a != "" && !a.AtLeast(s.ApprovalPolicy) {
		return fmt.Errorf("the profile %s has the approval policy %s, which is weaker than APPROVALBOT_APPROVAL_POLICY=%s: a profile can only be stricter", p.Name, a, s.ApprovalPolicy)
	}
	if m := p.Settings.SandboxMode; m != "" && !m.AtLeast(s.Sandbox) {
		return fmt.Errorf("the profile %s has the sandbox %s, which is weaker than APPROVALBOT_SANDBOX=%s: a profile can only be stricter", p.Name, m, s.Sandbox)
	}
	return nil
}

// profilePaths are the file of profiles and the files that it names: no tool may read or change them.
func (s *Settings) profilePaths() []string {
	if s.Profiles == "" {
		return nil
	}
	paths := []string{s.Profiles}
	if f, err := s.profileFile(); err == nil { // what is wrong with it is said where it is used
		for _, p := range f.All() {
			if p.File != "" {
				paths = append(paths, p.File)
			}
		}
	}
	return paths
}

// profileWorkspaces are the directories that agents work in besides the settings'.
func (s *Settings) profileWorkspaces() (all []string) {
	f, err := s.profileFile()
	if err != nil {
		return nil
	}
	for _, p := range f.All() {
		if p.Workspace != "" {
			all = append(all, p.Workspace)
		}
	}
	return all
}

// openMost is how many workspaces are kept open that no run works in.
const openMost = 32

// A cabinet opens what profiles name, and keeps it open for the runs that work in it. It is an [agent.ProfileSource].
//
// A workspace is opened when a run first works in it, with the built-in tools and the named actions for it; the tools of
// MCP servers are the same everywhere. It is closed when no run works in it and others are wanted more, or at the end.
type cabinet struct {
	file     *profiles.File
	settings Settings // with the shell settled
	open     func(s Settings) (*tools.Builtin, []tools.Tool, error)
	live     *tools.Live // with the tools of the settings' workspace
	models   map[string]model.Model
	log      *slog.Logger

	mu     sync.Mutex
	drawer map[string]*drawer // by directory
	order  []string           // the longest unused first
	parted []*drawer          // another directory stands in the place of theirs; they go with their last run
}

// A drawer is one open workspace.
type drawer struct {
	builtin *tools.Builtin
	tools   *otherTools
	is      os.FileInfo // the directory that was opened
	users   int
}

// openProfiles reads the profiles and makes their models. The tools are made when they are wanted. It returns nil where
// there are no profiles.
func (a *app) openProfiles(s Settings) (*cabinet, error) {
	f, err := s.profileFile()
	if err != nil || f == nil {
		return nil, err
	}
	c := &cabinet{
		file: f, settings: s, live: a.mcp.live, models: map[string]model.Model{}, log: a.log, drawer: map[string]*drawer{},
		open: func(s Settings) (*tools.Builtin, []tools.Tool, error) {
			b, err := s.openTools(messenger{a}, a.own...)
			if err != nil {
				return nil, nil, err
			}
			named, err := s.openActions(b.Dir())
			if err != nil {
				return nil, nil, errors.Join(err, b.Close())
			}
			return b, slices.Concat(b.Tools(), named.Tools()), nil
		},
	}
	for _, p := range f.All() {
		if p.Model == "" {
			continue
		}
		if c.models[p.Model], err = model.Open(p.Model, s.modelOptions(a.modelHTTP)); err != nil {
			return nil, fmt.Errorf("APPROVALBOT_PROFILES: the profile %s: %w", p.Name, err)
		}
	}
	return c, nil
}

// For implements [agent.ProfileSource].
func (c *cabinet) For(_ context.Context, place ledger.Place, session string) (agent.Profile, error) {
	p, ok := c.file.For(place.Channel)
	if !ok {
		return agent.Profile{}, nil
	}
	out := agent.Profile{Name: p.Name, Model: c.models[p.Model], Instructions: p.Instructions, Settings: p.Settings}
	if p.Workspace == "" {
		return out, nil
	}
	if err := ready(p); err != nil {
		return out, err
	}
	dir := p.Dir(session)
	if err := make0700(p, dir); err != nil {
		return out, err
	}
	d, err := c.take(dir)
	if err != nil {
		return out, fmt.Errorf("the workspace of the profile %s: %w", p.Name, err)
	}
	out.Workspace, out.Tools = d.builtin.Dir(), d.tools
	out.Release = func() { c.put(dir, d) }
	return out, nil
}

// toolsIn are the built-in tools of the workspace that a run works in; nil if there are none.
func (a *app) toolsIn(workspace string) *tools.Builtin {
	if a.profiles == nil {
		return a.builtin
	}
	a.profiles.mu.Lock()
	defer a.profiles.mu.Unlock()
	for _, d := range a.profiles.drawer {
		if d.builtin.Dir() == workspace {
			return d.builtin
		}
	}
	if workspace != a.builtin.Dir() {
		return nil // what isn't open is nobody's
	}
	return a.builtin
}

// ready sees to it that the workspace of a profile is there.
func ready(p profiles.Profile) error {
	info, err := os.Stat(p.Workspace)
	switch {
	case errors.Is(err, os.ErrNotExist) && p.Make:
		if err := os.MkdirAll(p.Workspace, 0o755); err != nil {
			return fmt.Errorf("the workspace of the profile %s can't be made: %w", p.Name, err)
		}
		return nil
	case err != nil || !info.IsDir():
		return fmt.Errorf("the workspace of the profile %s is not there", p.Name)
	}
	return nil
}

// make0700 makes a conversation's own directory. One that is a link leads elsewhere, and isn't used.
func make0700(p profiles.Profile, dir string) error {
	if !p.Own {
		return nil
	}
	root, err := os.OpenRoot(p.Workspace)
	if err != nil {
		return fmt.Errorf("the workspace of the profile %s can't be opened: %w", p.Name, err)
	}
	defer root.Close()
	name := filepath.Base(dir)
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("the directory of this conversation can't be made: %w", err)
	}
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("what should be the directory of this conversation is something else: %s in the workspace of the profile %s", name, p.Name)
	}
	return nil
}

// take opens a workspace, or finds it open, for one more run. What is open is a directory and not its name: where another
// one stands there by now, that is opened, and those who work in the first one end in it.
func (c *cabinet) take(dir string) (*drawer, error) {
	is, err := os.Stat(dir)
	if err != nil {
		return nil, errors.New("it is not there")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.drawer[dir]
	if d != nil && !os.SameFile(d.is, is) {
		c.part(dir, d)
		d = nil
	}
	if d == nil {
		s := c.settings
		s.Workspace = dir
		builtin, fixed, err := c.open(s)
		if err != nil {
			return nil, err
		}
		d = &drawer{builtin: builtin, tools: &otherTools{fixed: fixed, live: c.live}, is: is}
		c.drawer[dir] = d
	}
	d.users++
	c.order = append(slices.DeleteFunc(c.order, func(o string) bool { return o == dir }), dir)
	c.tidy()
	return d, nil
}

// part takes a workspace from its place. c.mu is held.
func (c *cabinet) part(dir string, d *drawer) {
	delete(c.drawer, dir)
	c.order = slices.DeleteFunc(c.order, func(o string) bool { return o == dir })
	if d.users == 0 {
		c.shut(dir, d)
		return
	}
	c.parted = append(c.parted, d)
}

// put says that a run is done with a workspace.
func (c *cabinet) put(dir string, d *drawer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.users--
	if i := slices.Index(c.parted, d); i >= 0 && d.users == 0 {
		c.parted = slices.Delete(c.parted, i, i+1)
		c.shut(dir, d)
	}
	c.tidy()
}

// tidy closes what is open and unused beyond a few. c.mu is held.
func (c *cabinet) tidy() {
	for _, dir := range slices.Clone(c.order) {
		if len(c.order) <= openMost {
			return
		}
		if d := c.drawer[dir]; d.users == 0 {
			c.part(dir, d)
		}
	}
}

func (c *cabinet) shut(dir string, d *drawer) {
	if err := d.builtin.Close(); err != nil {
		c.log.Warn("a workspace could not be closed", "workspace", dir, "error", err)
	}
}

// close lets go of all. No run works any more.
func (c *cabinet) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for dir, d := range c.drawer {
		c.shut(dir, d)
	}
	for _, d := range c.parted {
		c.shut(d.builtin.Dir(), d)
	}
	clear(c.drawer)
	c.order, c.parted = nil, nil
}

// otherTools are the tools of another workspace: its own in place of those of the settings' workspace, in their order, and
// with them whatever MCP servers offer at the moment.
type otherTools struct {
	fixed []tools.Tool
	live  *tools.Live

	mu   sync.Mutex
	from *tools.Set // what set was made of
	set  *tools.Set
}

// Set implements [agent.ToolSource].
func (e *otherTools) Set() *tools.Set {
	now := e.live.Set()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.from == now {
		return e.set
	}
	own := map[string]bool{}
	for _, t := range e.fixed {
		own[t.Spec().Name] = true
	}
	all := slices.Clone(e.fixed)
	for _, t := range e.live.Sources() {
		if !own[t.Spec().Name] {
			all = append(all, t)
		}
	}
	set, err := tools.NewSet(all...)
	if err != nil { // each was in a set before, so this can't be; without tools nothing is done
		set = &tools.Set{}
	}
	e.from, e.set = now, set
	return set
}

// profiles says for each profile whether it can be used.
func (d *diagnosis) profiles(s Settings) {
	f, err := s.profileFile()
	if err != nil || f == nil {
		return // what is wrong with it was named with the settings
	}
	for _, p := range f.All() {
		var holds []string
		holds = append(holds, p.Channels...)
		if p.Direct {
			holds = append(holds, "direct messages")
		}
		if p.Default {
			holds = append(holds, "everywhere else")
		}
		d.check("profile "+p.Name, strings.Join(holds, ", "), ready(p))
	}
}
