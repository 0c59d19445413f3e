package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"approvalbot/internal/policy"
	"approvalbot/internal/spelling"
)

// A FileError is everything that is wrong with a file of profiles, in the order of its lines.
type FileError struct {
	File     string
	Problems []Problem
}

// A Problem is one thing that is wrong.
type Problem struct {
	Line int // from 1; 0: the file as a whole
	What string
}

func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = e.File + ": " + p.What
		if p.Line > 0 {
			lines[i] = fmt.Sprintf("%s:%d: %s", e.File, p.Line, p.What)
		}
	}
	return strings.Join(lines, "\n")
}

// The bounds of a file.
const (
	maxFile         = 1 << 20
	maxProfiles     = 200
	maxInstructions = 256 << 10
)

var (
	profileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	channelID   = regexp.MustCompile(`^[CG][A-Z0-9]{1,30}$`)
)

// A reader reads one file and collects what is wrong with it.
type reader struct {
	dir      string // of the file: paths in it are relative to this
	model    func(name string) error
	problems []Problem
}

// Load reads a file of profiles. It is strict: a key that isn't known, a value of the wrong kind, a file or directory
// that isn't there is an error, because a profile that is quietly not what was meant does something else than people
// think. model says what is wrong with the name of a model.
func Load(name string, model func(name string) error) (*File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the profiles can't be read: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	return parse(name, dir, text, model)
}

func parse(name, dir string, text []byte, model func(name string) error) (*File, error) {
	r := &reader{dir: dir, model: model}
	f := &File{Name: name}
	if root := r.document(text); root != nil {
		f.profiles = r.profiles(root)
		r.together(f.profiles)
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, &FileError{name, r.problems}
	}
	return f, nil
}

func (r *reader) wrong(line int, format string, args ...any) {
	r.problems = append(r.problems, Problem{line, fmt.Sprintf(format, args...)})
}

func (r *reader) document(text []byte) *yaml.Node {
	switch {
	case len(text) > maxFile:
		r.wrong(0, "it has %d bytes, more than %d", len(text), maxFile)
		return nil
	case !utf8.Valid(text):
		r.wrong(0, "it is not UTF-8 text")
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		r.wrong(0, "it is empty: it has to have a list of profiles")
	case err != nil:
		r.wrong(0, "it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	case dec.Decode(&more) != io.EOF:
		r.wrong(0, "it has to be one YAML document: take the line --- and what follows out")
	default:
		return doc.Content[0]
	}
	return nil
}

// mapping is what a mapping says, by key; nil if it isn't one.
func (r *reader) mapping(n *yaml.Node, what string, keys []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.wrong(n.Line, "%s has to be a mapping with %s", what, strings.Join(keys, ", "))
		return nil
	}
	out := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case !slices.Contains(keys, key.Value):
			r.wrong(key.Line, "%s has no key %q.%s", what, key.Value, spelling.DidYouMean(key.Value, keys))
		case out[key.Value] != nil:
			r.wrong(key.Line, "%s has %s twice", what, key.Value)
		case value.Kind == yaml.AliasNode:
			r.wrong(value.Line, "%s: aliases (*) are not used here; write it out", key.Value)
		default:
			out[key.Value] = value
		}
	}
	return out
}

func (r *reader) profiles(root *yaml.Node) []Profile {
	m := r.mapping(root, "a file of profiles", []string{"profiles"})
	list := m["profiles"]
	switch {
	case m == nil:
		return nil
	case list == nil || list.Kind != yaml.SequenceNode:
		r.wrong(root.Line, "there is no list of profiles: the file has to have one (profiles: [])")
		return nil
	case len(list.Content) > maxProfiles:
		r.wrong(list.Line, "there are %d profiles, more than %d", len(list.Content), maxProfiles)
		return nil
	}
	var all []Profile
	for _, n := range list.Content {
		all = append(all, r.profile(n))
	}
	return all
}

var profileKeys = []string{
	"name", "channels", "direct", "default", "instructions", "instructions_file", "model", "workspace", "make", "sessions",
	"approval_policy", "sandbox",
}

func (r *reader) profile(n *yaml.Node) Profile {
	p := Profile{line: n.Line}
	m := r.mapping(n, "a profile", profileKeys)
	if m == nil {
		return p
	}
	p.Name = r.text(m, "name")
	if !profileName.MatchString(p.Name) {
		r.wrong(n.Line, "a profile needs a name of 1 to 64 letters, digits, '.', '_' or '-': it stands in the journal")
	}
	p.Channels = r.channels(m["channels"])
	p.Direct, p.Default, p.Make = r.flag(m, "direct"), r.flag(m, "default"), r.flag(m, "make")
	if len(p.Channels) == 0 && !p.Direct && !p.Default {
		r.wrong(n.Line, "the profile %s holds nowhere: give it channels (a list of ids, C…), direct: true or default: true", p.Name)
	}
	r.instructions(m, &p)
	p.Model = r.text(m, "model")
	if p.Model != "" && r.model != nil {
		if err := r.model(p.Model); err != nil {
			r.wrong(m["model"].Line, "model: %s", err)
		}
	}
	r.workspace(n, m, &p)
	r.settings(m, &p)
	return p
}

func (r *reader) text(m map[string]*yaml.Node, key string) string {
	n := m[key]
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		r.wrong(n.Line, "%s has to be a text", key)
		return ""
	}
	return n.Value
}

func (r *reader) flag(m map[string]*yaml.Node, key string) bool {
	n := m[key]
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.wrong(n.Line, "%s has to be true or false", key)
		return false
	}
	return n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
}

func (r *reader) channels(n *yaml.Node) (ids []string) {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		r.wrong(n.Line, "channels has to be a list of channel ids, as [C0123456789]")
		return nil
	}
	for _, c := range n.Content {
		switch {
		case !channelID.MatchString(c.Value):
			r.wrong(c.Line, "%q is not a channel id; Slack shows it (C…) at the end of a channel's details", c.Value)
		case slices.Contains(ids, c.Value):
			r.wrong(c.Line, "the channel %s stands here twice", c.Value)
		default:
			ids = append(ids, c.Value)
		}
	}
	return ids
}

// path makes a path of the file absolute.
func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(r.dir, name)
}

func (r *reader) instructions(m map[string]*yaml.Node, p *Profile) {
	p.Instructions = r.text(m, "instructions")
	name := r.text(m, "instructions_file")
	if name == "" {
		return
	}
	line := m["instructions_file"].Line
	if p.Instructions != "" {
		r.wrong(line, "give instructions or instructions_file, not both")
		return
	}
	p.File = r.path(name)
	text, err := os.ReadFile(p.File)
	switch {
	case err != nil:
		r.wrong(line, "instructions_file: %s", errors.Unwrap(err))
	case len(text) > maxInstructions:
		r.wrong(line, "instructions_file: it has %d bytes, more than %d", len(text), maxInstructions)
	case !utf8.Valid(text):
		r.wrong(line, "instructions_file: it is not UTF-8 text")
	default:
		p.Instructions = string(text)
	}
}

func (r *reader) workspace(n *yaml.Node, m map[string]*yaml.Node, p *Profile) {
	if name := r.text(m, "workspace"); name != "" {
		p.Workspace = r.path(name)
		info, err := os.Stat(p.Workspace)
		switch {
		case errors.Is(err, os.ErrNotExist) && p.Make:
		case err != nil:
			r.wrong(m["workspace"].Line, "workspace: there is no directory %s; make it, or add make: true", p.Workspace)
		case !info.IsDir():
			r.wrong(m["workspace"].Line, "workspace: %s is not a directory", p.Workspace)
		}
	}
	switch how := r.text(m, "sessions"); how {
	case "", "shared":
	case "own":
		p.Own = true
	default:
		r.wrong(m["sessions"].Line, "sessions: %q has to be shared (all conversations work in the workspace) or own (each in a directory of its own below it)", how)
	}
	if (p.Own || p.Make) && p.Workspace == "" {
		r.wrong(n.Line, "the profile %s has no workspace of its own: without one, make and sessions have no effect", p.Name)
	}
}

func (r *reader) settings(m map[string]*yaml.Node, p *Profile) {
	var err error
	if name := r.text(m, "approval_policy"); name != "" {
		if p.Settings.ApprovalPolicy, err = policy.ParseApprovalPolicy(name); err != nil {
			r.wrong(m["approval_policy"].Line, "approval_policy: %s", err)
		}
	}
	if name := r.text(m, "sandbox"); name != "" {
		if p.Settings.SandboxMode, err = policy.ParseSandboxMode(name); err != nil {
			r.wrong(m["sandbox"].Line, "sandbox: %s", err)
		}
	}
}

// together says what is wrong with profiles that are right by themselves.
func (r *reader) together(all []Profile) {
	names, channels := map[string]int{}, map[string]string{}
	direct, standard := "", ""
	for _, p := range all {
		if line, twice := names[p.Name]; twice && p.Name != "" {
			r.wrong(p.line, "there are two profiles called %s, the other one on line %d", p.Name, line)
		}
		names[p.Name] = p.line
		for _, c := range p.Channels {
			if other, twice := channels[c]; twice {
				r.wrong(p.line, "the channel %s has two profiles, %s and %s: it can have one", c, other, p.Name)
			}
			channels[c] = p.Name
		}
		if p.Direct && direct != "" {
			r.wrong(p.line, "direct messages have two profiles, %s and %s: they can have one", direct, p.Name)
		}
		if p.Default && standard != "" {
			r.wrong(p.line, "there are two default profiles, %s and %s: there can be one", standard, p.Name)
		}
		if p.Direct {
			direct = p.Name
		}
		if p.Default {
			standard = p.Name
		}
	}
	r.apart(all)
}

// apart says which workspaces lie in others.
func (r *reader) apart(all []Profile) {
	for i, p := range all {
		for _, earlier := range all[:i] {
			if p.Overlaps(earlier) {
				r.wrong(p.line, "the workspaces of the profiles %s and %s lie one in the other: who works in the outer one reaches all of the inner one. Put them side by side", earlier.Name, p.Name)
			}
		}
	}
}
