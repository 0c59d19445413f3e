package actions

import (
	"path/filepath"
	"slices"
	"strings"
)

// checkRun checks the arguments against the inputs.
func (r *reader) checkRun() {
	r.checkProgram()
	each(r.a.run, r.checkArgument)
	for _, g := range r.a.run {
		if g.when == "" {
			continue
		}
		if in := r.a.input(g.when); in == nil {
			r.missing(g.line, "when: ", g.when)
		} else if in.schema.Type != "boolean" {
			r.add(g.line, "when: %s has to be a boolean; a list that only holds arguments is left out when its input is", g.when)
		}
	}
	for _, in := range r.a.inputs {
		if !r.a.uses(in.name) {
			r.add(in.line, "the input %s is used nowhere in run, so it would have no effect; put {{%[1]s}} there or take it away", in.name)
		}
	}
	for _, g := range r.a.run {
		needs := g.inputs()
		all := !slices.ContainsFunc(needs, func(name string) bool { in := r.a.input(name); return in == nil || !in.sure() })
		if g.whole && g.when == "" && all && len(g.args) > 0 {
			r.notes.add(g.line, "this list is always there, since none of its inputs is optional: it could as well stand in run without the brackets")
		}
	}
	r.checkScript()
}

// missing says that there is no such input, if that is known.
func (r *reader) missing(line int, where, name string) {
	if !r.unread {
		r.add(line, "%sthere is no input %s%s", where, name, suggestion(name, r.a.inputNames()))
	}
}

// checkProgram wants the first element to be the program, by name or path.
func (r *reader) checkProgram() {
	if len(r.a.run) == 0 || len(r.a.run[0].args) == 0 {
		return
	}
	first := r.a.run[0]
	program, fixed := first.args[0].literal()
	switch {
	case first.whole || !fixed:
		r.add(first.line, "run has to begin with the program itself; which program runs can't be an input, and can't be left out")
	case program == "" || strings.HasPrefix(program, "-") || strings.ContainsAny(program, "= \t\n"):
		r.add(first.line, "run has to begin with a program, and begins with %q; each argument is an element of its own: [systemctl, restart, web]", program)
	case strings.Contains(program, "/") && !filepath.IsAbs(program):
		r.add(first.line, "the program %s has to be an absolute path, or a name that is looked up in PATH", program)
	}
}

func (r *reader) checkArgument(g group, a argument) {
	lists := 0
	for _, name := range a.inputs() {
		in := r.a.input(name)
		switch {
		case in == nil:
			r.missing(a.line, "", name)
			continue
		case !in.sure() && !g.whole:
			r.add(a.line, `%s is optional, so what belongs to it has to stand in a list of its own, which is left out with it: ["--%[1]s", "{{%[1]s}}"]`, name)
		case g.when == name:
			r.add(a.line, "%s decides whether this is there, so it would always say true; write what it should say", name)
		}
		if in.list() {
			lists++
		}
	}
	if lists > 1 {
		r.add(a.line, "an argument can hold one list only: it is there once for each of its items")
	}
	if len(a.template) > 1 && a.template[0].input == "" && strings.Trim(a.template[0].text, "-") == "" {
		r.notes.add(a.line, "the value decides which option this is; give it an enum, or write the option out")
	}
}

// inputs are the inputs in a group's arguments.
func (g group) inputs() []string {
	var names []string
	for _, a := range g.args {
		names = append(names, a.inputs()...)
	}
	return names
}

// evaluators are programs that run an argument as code, with the options that it comes behind.
var evaluators = map[string][]string{
	"sh": {"c"}, "bash": {"c"}, "dash": {"c"}, "zsh": {"c"}, "ksh": {"c"}, "ash": {"c"}, "fish": {"c", "command"}, "busybox": {"c"},
	"python": {"c"}, "perl": {"e", "E"}, "ruby": {"e"}, "node": {"e", "p", "eval", "print"}, "php": {"r"}, "pwsh": {"c", "Command"},
	"osascript": {"e"}, "su": {"c", "command"}, "psql": {"c", "command"}, "mysql": {"e", "execute"}, "sed": {"e", "expression"}, "awk": {"e"}, "gawk": {"e", "source"},
}

// codeFirst are programs whose first argument is code that can run programs.
var codeFirst = []string{"awk", "gawk", "mawk", "nawk", "sed", "eval"}

// remote are programs that hand all their arguments to a shell somewhere, joined by spaces.
var remote = []string{"ssh", "watch"}

// wrappers are programs that run the program that they are given.
var wrappers = []string{"sudo", "doas", "env", "nice", "nohup", "timeout", "time", "xargs", "setsid", "stdbuf", "flock", "chroot", "unshare", "find"}

// family is a program without its directory and version: python3.12 is python.
func family(program string) string {
	return strings.TrimRight(filepath.Base(program), "0123456789.")
}

// checkScript refuses values in text that a program would run as code: no quoting of ours could make them data there.
func (r *reader) checkScript() {
	var options []string          // of the evaluator that was named last
	script, first := false, false // what comes next is code, or is the first thing that is no option
	each(r.a.run, func(_ group, a argument) {
		text, fixed := a.literal()
		if first && fixed && !strings.HasPrefix(text, "-") {
			first = false
		}
		switch {
		case fixed && slices.Contains(remote, family(text)):
			options = []string{"*"}
		case fixed && evaluators[family(text)] != nil:
			options = evaluators[family(text)]
		case (script || first) && !fixed:
			r.add(a.line, `a value can't stand in code that a program runs: whatever the value says would run, too. `+
				`Give it as an argument behind the code: [sh, -c, 'echo "$1"', sh, "{{%s}}"]`, a.inputs()[0])
		case slices.Equal(options, []string{"*"}) && !fixed && !r.unread && !r.harmless(a):
			r.add(a.line, "what stands here is joined with spaces and run by a shell at the other end, so a value could run anything there; "+
				"give {{%s}} an enum, or a pattern of letters and digits such as ^[A-Za-z0-9._-]+$", a.inputs()[0])
		}
		script = fixed && codeOption(text, options)
		first = first || fixed && slices.Contains(codeFirst, family(text))
	})
}

// codeOption tells whether what follows an option is code: -c, -ec, --command.
func codeOption(text string, options []string) bool {
	for _, o := range options {
		short, bundled := strings.CutPrefix(text, "-")
		switch {
		case len(o) > 1 && (text == "--"+o || text == "-"+o):
			return true
		case len(o) == 1 && bundled && !strings.HasPrefix(short, "-") && strings.HasSuffix(short, o):
			return true
		}
	}
	return false
}
