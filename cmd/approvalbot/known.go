package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/spelling"
	"approvalbot/internal/tools"
	"approvalbot/internal/tools/actions"
	"approvalbot/internal/tools/mcp"
)

// A toolbox says which tools there are besides the built-in ones, for commands that judge calls without a bot. Nothing of it
// is started, and no secret is needed.
type toolbox struct {
	Actions   string `env:"APPROVALBOT_ACTIONS_FILE" placeholder:"FILE" help:"A file of named actions that are to be known, too."`
	MCPConfig string `name:"mcp-config" env:"APPROVALBOT_MCP_CONFIG" placeholder:"FILE" help:"The MCP servers that there are. They are not started: what is known of their tools is whether they are trusted."`
}

// open makes the tools known.
func (b toolbox) open() (_ *knownTools, err error) {
	k := &knownTools{actionsFile: b.Actions, mcpFile: b.MCPConfig, trusted: map[string]bool{}}
	var file *actions.File
	if b.Actions != "" {
		if file, err = actions.Load(b.Actions, approverList); err != nil {
			return nil, err
		}
	}
	if b.MCPConfig != "" {
		config, err := mcp.ReadConfig(b.MCPConfig, anyValue)
		if err != nil {
			return nil, err
		}
		for _, s := range config.Servers {
			if !s.Disabled {
				k.trusted[mcp.Prefix(s.Name)] = s.Trust
			}
		}
	}
	return k, k.openTools(file)
}

// anyValue stands for variables that are set where the bot runs.
func anyValue(name string) (string, bool) { return cmp.Or(os.Getenv(name), "unset"), true }

// knownTools are the tools that policy commands know: the built-in ones, named actions, and of MCP servers what a
// configuration and a journal say. They are asked what they know of a call, and never called.
type knownTools struct {
	builtin     *tools.Builtin
	set         *tools.Set // the built-in ones and the named actions
	dir         string
	actionsFile string
	mcpFile     string
	trusted     map[string]bool       // by what the names of a server's tools begin with
	seen        map[string]tools.Spec // how tools of MCP servers were defined last
}

func (k *knownTools) openTools(file *actions.File) (err error) {
	if k.dir, err = os.MkdirTemp("", "approvalbot-policy-"); err != nil { // the tools want a workspace
		return err
	}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	k.builtin, err = tools.OpenBuiltin(tools.Options{
		Workspace: k.dir, Shell: tools.ShellUnconfined, HTTP: &tools.HTTPOptions{Allow: allowedHosts()}, Messenger: messenger{},
	})
	if err != nil {
		return err
	}
	all := k.builtin.Tools()
	if file != nil {
		all = slices.Concat(all, file.Tools())
	}
	k.set, err = tools.NewSet(all...)
	return err
}

// allowedHosts are those of APPROVALBOT_HTTP_ALLOW, if they are well-formed: a call to others ends before it is judged.
func allowedHosts() []string {
	hosts := strings.FieldsFunc(os.Getenv("APPROVALBOT_HTTP_ALLOW"), func(r rune) bool { return r == ',' || r == ' ' })
	if tools.CheckHosts(hosts) != nil {
		return nil
	}
	return hosts
}

func (k *knownTools) close() {
	if k.builtin != nil {
		k.builtin.Close() // it was only read from
	}
	os.Remove(k.dir)
}

// readSeen reads from the journal of a data directory how the tools of MCP servers were defined last; without one nothing.
func (k *knownTools) readSeen(ctx context.Context, dataDir string) error {
	s := Settings{DataDir: dataDir}
	if _, err := os.Stat(s.journalDir()); err != nil {
		return nil
	}
	journal, err := ledger.OpenReader(ctx, s.journalDir())
	if err != nil {
		return err
	}
	defer journal.Close()
	k.seen = map[string]tools.Spec{}
	for e, err := range journal.Read(ctx, 0, ledger.Filter{Kinds: []string{"tool_defined"}}) {
		if err != nil {
			return err
		}
		b, ok := e.Body.(*ledger.ToolDefined)
		if !ok {
			continue
		}
		var spec tools.Spec
		if err := json.Unmarshal(b.Definition, &spec); err != nil || spec.InputSchema == nil {
			delete(k.seen, b.Tool) // erased: what it was nobody knows
			continue
		}
		k.seen[b.Tool] = spec
	}
	return nil
}

// knowledge is what was known of the tool of a call.
type knowledge struct {
	from    string   // where it is defined
	wrong   []string // what would keep the call from being judged at all
	unknown string   // what isn't known of the tool; "" if all is
}

// impossible notes that the tool itself finds the arguments impossible.
func (k *knowledge) impossible(tool tools.Tool, args json.RawMessage) {
	_, err := tool.Describe(args)
	if e, ok := errors.AsType[*tools.Error](err); ok && (e.Code == tools.CodeInvalidArguments || e.Code == tools.CodeNotAllowed) {
		k.wrong = append(k.wrong, "such a call ends before it is judged, because of its arguments: "+e.Message)
	}
}

// call adds what the tool knows of a call; of a tool that isn't known, what is assumed of everyone.
func (k *knownTools) call(c policy.Call, given map[string]bool) (policy.Call, knowledge) {
	var known knowledge
	about := policy.Call{Tool: c.Tool, Args: c.Args, Destructive: true, OpenWorld: true}
	fits := func(spec tools.Spec) (json.RawMessage, bool) {
		args, err := tools.ParseArguments(spec, c.Args)
		if err != nil {
			known.wrong = append(known.wrong, "such a call ends before it is judged, because of its arguments: "+err.Error())
		}
		return args, err == nil
	}
	server, trusted := k.server(c.Tool)
	if tool, ok := k.set.Get(c.Tool); ok {
		known.from = k.place(tool)
		if args, ok := fits(tool.Spec()); ok {
			about = agent.PolicyCall(tool, args)
			known.impossible(tool, args)
		}
	} else if spec, ok := k.seen[c.Tool]; ok {
		known.from = "its MCP server, as it defined it last"
		if args, ok := fits(spec); ok {
			about.Args = args
		}
		if trusted {
			a := spec.Annotations
			about.ReadOnly, about.Destructive, about.OpenWorld = a.ReadOnly(), a.Destructive(), a.OpenWorld()
		} else {
			known.unknown = server + ", so what it says of its effects doesn't count"
		}
	} else {
		known.unknown = k.stranger(c.Tool, server)
	}
	about.Requesters, about.Channel, about.Session, about.Now = c.Requesters, c.Channel, c.Session, c.Now
	for name, into := range map[string]*bool{"readOnlyHint": &about.ReadOnly, "destructiveHint": &about.Destructive, "openWorldHint": &about.OpenWorld} {
		if is, ok := given[name]; ok {
			*into = is
		}
	}
	if is, ok := given["readOnlyHint"]; ok && is {
		if _, said := given["destructiveHint"]; !said {
			about.Destructive = false // as MCP has it
		}
	}
	return about, known
}

// place says who defines a tool that is known.
func (k *knownTools) place(tool tools.Tool) string {
	if _, ok := tool.(*actions.Action); ok {
		return k.actionsFile
	}
	return "approvalbot: it is built in"
}

// server says in words what the configuration says of the server of a tool, and whether it is trusted.
func (k *knownTools) server(tool string) (words string, trusted bool) {
	for prefix, trusted := range k.trusted {
		if strings.HasPrefix(tool, prefix) {
			return "its MCP server is " + map[bool]string{true: "trusted", false: "not trusted"}[trusted], trusted
		}
	}
	if k.mcpFile == "" {
		return "no MCP configuration is given (--mcp-config)", false
	}
	return filepath.Base(k.mcpFile) + " has no server whose tools are called so", false
}

// stranger says what isn't known of a tool.
func (k *knownTools) stranger(tool, server string) string {
	const assumed = "; its arguments are not checked, and it is taken for one that may do anything"
	switch {
	case strings.HasPrefix(tool, tools.RemotePrefix):
		return "how the tool is defined isn't known, for servers are not started here; " + server + assumed
	case k.actionsFile == "":
		return "no built-in tool is called so, and no file of actions is given (--actions)" + assumed
	}
	return "neither a built-in tool nor an action of " + k.actionsFile + " is called so" + assumed
}

// misspelt finds names of tools in rules that are nearly a known tool's.
func (k *knownTools) misspelt(rules []policy.Rule) (out []string) {
	var names []string
	for _, s := range k.set.Specs() {
		names = append(names, s.Name)
	}
	for _, r := range rules {
		for _, t := range r.Tools {
			right, apart := spelling.Closest(t, names)
			if apart == 0 || apart > 2 || strings.ContainsAny(t, "*?") {
				continue
			}
			kind := "built-in one"
			if tool, _ := k.set.Get(right); tool != nil {
				if _, ok := tool.(*actions.Action); ok {
					kind = "action"
				}
			}
			out = append(out, fmt.Sprintf("the rule %s is about the tool %s; the %s is called %s", r.Name, t, kind, right))
		}
	}
	return out
}

// missing finds tools in rules that nobody defines. Without a file of actions nobody can say.
func (k *knownTools) missing(rules []policy.Rule) (out []string) {
	if k.actionsFile == "" {
		return nil
	}
	for _, r := range rules {
		for _, t := range r.Tools {
			if _, ok := k.set.Get(t); ok || strings.ContainsAny(t, "*?") || strings.HasPrefix(t, "mcp_") || len(k.misspelt([]policy.Rule{{Tools: []string{t}}})) > 0 {
				continue
			}
			out = append(out, fmt.Sprintf("the rule %s is about the tool %s, which is neither built in nor an action of %s", r.Name, t, k.actionsFile))
		}
	}
	return out
}

// unfit finds patterns that no tool can fit: those that miss the names of MCP servers' tools by an underscore, and, where
// the file of actions is known, those that fit none.
func (k *knownTools) unfit(rules []policy.Rule) (out []string) {
	for _, r := range rules {
		for _, t := range r.Tools {
			begins := t
			if i := strings.IndexAny(t, "*?"); i >= 0 {
				begins = t[:i]
			}
			remote := strings.HasPrefix(begins, tools.RemotePrefix) || strings.HasPrefix(tools.RemotePrefix, begins)
			switch {
			case remote || aboutAny(k.set, policy.Rule{Tools: []string{t}}):
			case strings.HasPrefix(begins, "mcp_"):
				out = append(out, fmt.Sprintf("the rule %s is about the tool %s; the tools of MCP servers are called %sSERVER__TOOL, with two underscores each", r.Name, t, tools.RemotePrefix))
			case begins != t && k.actionsFile != "":
				out = append(out, fmt.Sprintf("the rule %s is about the tool %s, which neither a built-in tool nor an action of %s fits", r.Name, t, k.actionsFile))
			}
		}
	}
	return out
}

// aboutAny tells whether a rule is about one of the tools.
func aboutAny(set *tools.Set, r policy.Rule) bool {
	return slices.ContainsFunc(set.Specs(), func(s tools.Spec) bool { return r.Covers(s.Name) })
}

// arguments finds conditions that name an argument which no tool of their rule has, or one of which something better is
// known. Where a rule is about tools that aren't known, nobody can say.
func (k *knownTools) arguments(rules []policy.Rule) (out []string) {
	for _, r := range rules {
		about, all := []string{}, map[string]bool{}
		for _, t := range r.Tools {
			tool, ok := k.set.Get(t)
			if !ok {
				about = nil
				break
			}
			about = append(about, t)
			for name := range tool.Spec().InputSchema.Properties {
				all[name] = true
			}
		}
		if len(about) == 0 {
			continue
		}
		for _, name := range r.Arguments() {
			if !all[name] {
				out = append(out, fmt.Sprintf("the rule %s asks for args.%s, an argument that %s does not have (there is %s): a rule that can't be evaluated %s, unless has() or another condition keeps it from being asked",
					r.Name, name, strings.Join(about, ", "), strings.Join(slices.Sorted(maps.Keys(all)), ", "), countsAs(r.Effect)))
			}
		}
		out = append(out, k.better(r, about)...)
	}
	return out
}

// countsAs is what becomes of every call if a rule can't be evaluated.
func countsAs(effect policy.Type) string {
	switch effect {
	case policy.Deny:
		return "denies every call"
	case policy.Ask:
		return "asks about every call"
	}
	return "allows no call"
}

// better says of arguments of built-in tools what to ask for instead.
func (k *knownTools) better(r policy.Rule, about []string) (out []string) {
	for _, t := range about {
		tool, _ := k.set.Get(t)
		if _, ok := tool.(*actions.Action); ok {
			continue
		}
		for _, name := range r.Arguments() {
			switch {
			case name == "path" && tool.Spec().InputSchema.Properties[name] != nil:
				return []string{fmt.Sprintf("the rule %s asks for args.path; use path: it is clean, while args.path is as the model wrote it (./a, b/../a)", r.Name)}
			case name == "command" && t == "shell":
				return []string{fmt.Sprintf("the rule %s asks for args.command; use command.programs for what it runs, or command.text: args.command is as the model wrote it", r.Name)}
			}
		}
	}
	return nil
}
