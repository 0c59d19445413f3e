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

// shells are the evaluators that read options, and only options, between -c and the code.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox"}

// toldTo are programs that are no evaluators, and have options whose value is code.
var toldTo = map[string][]string{
	"lua": {"e"}, "luajit": {"e"}, "Rscript": {"e"}, "bun": {"e", "eval", "p", "print"}, "mongosh": {"eval"}, "mongo": {"eval"},
	"gdb": {"ex", "eval-command", "iex"}, "lldb": {"o", "one-line"}, "vim": {"c", "cmd"}, "nvim": {"c", "cmd"}, "vi": {"c"}, "ex": {"c"},
	"tar": {"I", "use-compress-program", "to-command", "checkpoint-action"}, "rsync": {"e", "rsh", "rsync-path"}, "env": {"S", "split-string"},
	"powershell": {"c", "Command"}, "xterm": {"e"},
}

// codeOptions are the options of a program whose value is code; nil: it has none.
func codeOptions(program string) []string {
	if options := evaluators[program]; options != nil {
		return options
	}
	return toldTo[program]
}

// codeFirst are programs whose first argument is code that can run programs.
var codeFirst = []string{"awk", "gawk", "mawk", "nawk", "sed", "eval"}

// remote are programs that hand all their arguments to a shell somewhere, joined by spaces.
var remote = []string{"ssh", "watch"}

// wrappers are programs that run the program that they are given.
var wrappers = []string{"sudo", "doas", "env", "nice", "nohup", "timeout", "time", "xargs", "setsid", "stdbuf", "flock", "chroot", "unshare", "find"}

// A launcher is a program that runs another one, or a script, that stands among its arguments.
type launcher struct {
	before int      // arguments that stand before the program
	values []string // options that have a value behind them; what else begins with a dash is a flag
	// guessed is that any option may have a value: the argument behind one isn't taken for the program.
	guessed bool
}

// launchers are such programs. Of find it is what stands behind -exec.
var launchers = map[string]launcher{
	"sudo": {values: strings.Fields("-u -g -h -p -C -D -R -r -t -T -U --user --group --host --prompt --chdir --chroot --role --type --other-user")}, "doas": {values: []string{"-u", "-C"}},
	"env": {values: []string{"-u", "-C", "--unset", "--chdir"}}, "nice": {values: []string{"-n", "--adjustment"}}, "nohup": {}, "setsid": {}, "time": {values: []string{"-f", "-o"}},
	"timeout": {before: 1, values: []string{"-k", "-s", "--kill-after", "--signal"}}, "stdbuf": {values: []string{"-i", "-o", "-e"}},
	"chroot": {before: 1, guessed: true}, "flock": {before: 1, guessed: true}, "xargs": {guessed: true}, "unshare": {guessed: true}, "nsenter": {guessed: true}, "gosu": {before: 1}, "setpriv": {guessed: true},
	"sh": {values: shellValues}, "bash": {values: shellValues}, "dash": {values: shellValues}, "zsh": {values: shellValues}, "ksh": {values: shellValues}, "ash": {values: shellValues}, "fish": {guessed: true}, "busybox": {},
	"python": {values: []string{"-W", "-X"}}, "perl": {}, "ruby": {values: []string{"-r", "-I", "-C", "-E"}}, "node": {guessed: true}, "php": {guessed: true}, "lua": {values: []string{"-l"}}, "tclsh": {}, "osascript": {values: []string{"-l"}},
}

var shellValues = []string{"-o", "+o", "-O", "+O", "--rcfile", "--init-file"}

// family is a program without its directory and version: python3.12 is python.
func family(program string) string {
	return strings.TrimRight(filepath.Base(program), "0123456789.")
}

// checkScript refuses values in text that a program would run as code: no quoting of ours could make them data there. It
// refuses them, too, where they would name the program that another one is to run.
func (r *reader) checkScript() {
	s := scripts{reader: r}
	each(r.a.run, s.argument)
}

// scripts is a reading of the arguments from left to right.
type scripts struct {
	*reader
	remote  bool      // all that comes is run by a shell at the other end
	program string    // the one that was named last and may be told to run code
	options []string  // those of its options that are followed by code
	code    bool      // what comes next is code
	first   bool      // the first thing that is no option is code
	runs    *launcher // what comes next may be the program that this one runs; nil: no
	before  int       // arguments that still come before it
	value   bool      // what comes next is, or may be, the value of an option
	zero    bool      // what comes next is the name that a shell's code has for itself
}

func (s *scripts) argument(_ group, a argument) {
	text, fixed := a.literal()
	if !fixed {
		s.check(a)
		if !s.code { // what decided about the next argument has
			s.passed()
		}
		s.code, s.zero = false, false
		return
	}
	s.follow(text)
}

// check says what is wrong with a value here.
func (s *scripts) check(a argument) {
	begin := a.template[0].text // "" if the value stands there
	name := a.inputs()[0]
	switch {
	case s.code || s.first || codeOption(begin, s.options, true):
		s.add(a.line, `a value can't stand in code that a program runs: whatever the value says would run, too. `+
			`Give it as an argument behind the code: [sh, -c, 'echo "$1"', sh, "{{%s}}"]`, name)
	case s.remote && !s.unread && !s.harmless(a):
		s.add(a.line, "what stands here is joined with spaces and run by a shell at the other end, so a value could run anything there; "+
			"give {{%s}} an enum, or a pattern of letters and digits such as ^[A-Za-z0-9._-]+$", name)
	case s.runs != nil && s.before == 0 && !s.value && begin == "" && !s.unread && !s.chosen(a):
		s.add(a.line, "%s would run the program that {{%s}} names, and which program runs can't be an input; write it out, or give {{%[2]s}} an enum", s.program, name)
	}
}

// chosen tells whether the operator wrote down all that may stand in an argument.
func (s *scripts) chosen(a argument) bool {
	return !slices.ContainsFunc(a.inputs(), func(name string) bool {
		in := s.a.input(name)
		return in == nil || len(in.schema.Enum) == 0 && in.schema.Const == nil
	})
}

// passed notes that an argument came that is no option.
func (s *scripts) passed() {
	switch {
	case s.value:
		s.value = false
	case s.before > 0:
		s.before--
	case s.runs != nil: // this is what it runs; what follows is told to that
		s.runs, s.options = nil, nil
	}
}

// follow reads a literal argument.
func (s *scripts) follow(text string) {
	dash := strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+")
	if s.code {
		s.code = dash && slices.Contains(shells, s.program) // sh -c -e CODE, sh -c -- CODE
		if !s.code {                                        // it was the code, and what follows are its arguments
			s.runs, s.value = nil, false
			if slices.Contains(shells, s.program) {
				s.options, s.zero = nil, true
			}
		}
		return
	}
	if s.zero {
		s.zero = false
		return
	}
	if s.first && !dash {
		s.first = false
	}
	name := family(text)
	launch, launches := launchers[name]
	switch {
	case slices.Contains(remote, name):
		s.remote = true
	case codeOptions(name) != nil || launches:
		s.program, s.options = name, codeOptions(name)
		s.runs, s.before, s.value = nil, 0, false
		if launches {
			s.runs, s.before = &launch, launch.before
		}
	case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, text):
		s.program, s.runs, s.before, s.value = "find", &launcher{}, 0, false
	case codeOption(text, s.options, false):
		s.code = true
	case !dash && s.program == "env" && s.runs != nil && strings.Contains(text, "="):
	case !dash:
		s.passed()
	case s.runs != nil && text != "--":
		s.value = slices.Contains(s.runs.values, text) || s.runs.guessed && !strings.Contains(text, "=")
	}
	s.first = s.first || slices.Contains(codeFirst, name)
}

// codeOption tells whether an option is followed by code: -c, -ec, --command; or, if it is attached, has code behind it:
// -cCODE, --command=CODE.
func codeOption(text string, options []string, attached bool) bool {
	short, dash := strings.CutPrefix(text, "-")
	if !dash || short == "" {
		return false
	}
	long, _, assigned := strings.Cut(strings.TrimLeft(text, "-"), "=")
	cluster := !strings.HasPrefix(short, "-")
	for _, o := range options {
		switch {
		case len(o) > 1 && long == o && assigned == attached:
			return true
		case len(o) > 1 || !cluster:
		case strings.HasSuffix(short, o) || attached && strings.HasPrefix(short, o):
			return true
		case !attached && o == "c" && letters(short) && strings.Contains(short, o): // sh -ce CODE
			return true
		}
	}
	return false
}

// letters tells whether an option is a cluster of letters, and short enough for one.
func letters(s string) bool {
	return len(s) <= 4 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
