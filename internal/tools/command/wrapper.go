package command

import (
	"slices"
	"strings"
)

// A wrapper is a program whose arguments end in another program with its
// arguments. Its options are listed, since only with them it can be told where
// that program begins; one that isn't listed is not understood. Long options are
// known by their whole name.
type wrapper struct {
	flags    string   // short options without a value
	values   string   // short options with one, attached or in the next word
	optional string   // short options with a value that is attached or isn't there
	long     []string // without a value, or with one behind "="; in full
	longNext []string // with a value, behind "=" or in the next word
	operands int      // words between the options and the program
	assigns  bool     // NAME=VALUE may stand before the program
	more     bool     // adds arguments that aren't in the text
}

var wrappers = map[string]wrapper{
	"env": {flags: "iv0", values: "uC", assigns: true, long: []string{"--ignore-environment", "--null", "--debug", "--default-signal", "--ignore-signal", "--block-signal", "--list-signal-handling"},
		longNext: []string{"--unset", "--chdir"}}, // -S splits a text into words in a way of its own: not understood
	"timeout": {flags: "vfp", values: "ks", operands: 1, long: []string{"--preserve-status", "--foreground", "--verbose"}, longNext: []string{"--kill-after", "--signal"}},
	"nohup":   {},
	"setsid":  {flags: "cfw", long: []string{"--ctty", "--fork", "--wait"}},
	"nice":    {flags: "0123456789", values: "n", longNext: []string{"--adjustment"}},
	"ionice":  {flags: "t", values: "cn", long: []string{"--ignore"}, longNext: []string{"--class", "--classdata"}},
	"chrt":    {flags: "bfiora", operands: 1},
	"taskset": {flags: "c", operands: 1, long: []string{"--cpu-list"}},
	"stdbuf":  {values: "ioe", longNext: []string{"--input", "--output", "--error"}},
	"time":    {flags: "apqvV", values: "fo", long: []string{"--append", "--portability", "--verbose"}, longNext: []string{"--format", "--output"}},
	"chroot":  {operands: 1, long: []string{"--skip-chdir", "--userspec", "--groups"}},
	// sudo's -s, -i and -e run more than what follows: not understood.
	"sudo": {flags: "nEHSkPbAB", values: "ughpCTrtDR", assigns: true, long: []string{"--non-interactive", "--preserve-env", "--set-home", "--stdin", "--background"},
		longNext: []string{"--user", "--group", "--host", "--prompt", "--chdir"}},
	"doas": {flags: "n", values: "u"},
	// The words that xargs reads are arguments of the program it is given.
	"xargs": {flags: "0rtpxo", values: "nPIJLsdEaR", optional: "iel", more: true,
		long:     []string{"--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit", "--open-tty", "--replace", "--max-lines", "--eof", "--show-limits"},
		longNext: []string{"--max-args", "--max-procs", "--max-chars", "--delimiter", "--arg-file", "--process-slot-var"}},
	"command":   {flags: "p"},
	"exec":      {flags: "cl", values: "a"},
	"busybox":   {},
	"toybox":    {},
	"coreutils": {},
}

// rest finds the program in the arguments and what was given to the options
// whose values matter. It reports false where it can't tell.
func (w wrapper) rest(args []word) (program []word, options map[string]string, ok bool) {
	options = map[string]string{}
	i := 0
	for ; i < len(args); i++ {
		a := args[i]
		if !a.literal {
			return nil, nil, false // it may be an option, or nothing at all
		}
		if a.text == "--" {
			i++
			break
		}
		if len(a.text) < 2 || a.text[0] != '-' {
			break
		}
		name, value, next, known := w.option(a.text)
		if !known {
			return nil, nil, false
		}
		if next {
			if i++; i >= len(args) || !args[i].literal {
				return nil, nil, false
			}
			value = args[i].text
		}
		options[name] = value
	}
	if i < len(args) && args[i].literal && args[i].text == "-" && w.assigns { // env's old -i
		i++
	}
	for n := 0; n < w.operands && i < len(args); n++ {
		if !args[i].literal {
			return nil, nil, false
		}
		i++
	}
	return args[i:], options, true
}

// option reads one word of options. Of a cluster of short ones the last is named.
// next says that its value is the next word.
func (w wrapper) option(text string) (name, value string, next, known bool) {
	if strings.HasPrefix(text, "--") {
		name, value, attached := strings.Cut(text, "=")
		if slices.Contains(w.longNext, name) {
			return name, value, !attached, true
		}
		return name, value, false, slices.Contains(w.long, name)
	}
	for i := 1; i < len(text); i++ {
		c := text[i : i+1]
		switch rest := text[i+1:]; {
		case strings.Contains(w.values, c):
			return "-" + c, rest, rest == "", true
		case strings.Contains(w.optional, c):
			return "-" + c, rest, false, true
		case !strings.Contains(w.flags, c):
			return "", "", false, false
		}
	}
	return text, "", false, true
}

// wrapped reads the arguments of a wrapper.
func (r *reading) wrapped(name string, w wrapper, args []word) {
	program, options, ok := w.rest(args)
	for ok && w.assigns && len(program) > 0 {
		if !program[0].literal {
			break // run will say it
		}
		variable, value, assignment := strings.Cut(program[0].text, "=")
		if !assignment {
			break
		}
		r.environment(variable, word{text: value, literal: true})
		program = program[1:]
	}
	if !ok {
		r.doubt("the arguments of %s don't say clearly what it runs", name)
		return
	}
	if w.more {
		program = withInput(program, options)
	}
	r.run(program)
}

// withInput is what xargs runs: its arguments, and words that it reads. Where one
// is put in the place of a mark, the words with that mark are known only then.
func withInput(program []word, options map[string]string) []word {
	if len(program) == 0 {
		return nil // echo
	}
	marks := []string{}
	for _, name := range []string{"-I", "-J", "-i", "--replace"} {
		mark, given := options[name]
		if given && mark == "" {
			mark = "{}"
		}
		if given {
			marks = append(marks, mark)
		}
	}
	return append(marked(program, marks), word{})
}

// marked returns the words with those that hold a mark made unknown.
func marked(words []word, marks []string) []word {
	out := slices.Clone(words)
	for i := range out {
		if slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(out[i].text, mark) }) {
			out[i] = word{}
		}
	}
	return out
}

// lookup reads command -v and -V, which run nothing.
func (r *reading) lookup(name string, args []word) {
	if len(args) > 0 && args[0].literal && (args[0].text == "-v" || args[0].text == "-V") {
		return
	}
	r.wrapped(name, wrappers[name], args)
}

// find reads the expression of find for the programs in it.
func (r *reading) find(_ string, args []word) {
	for i := 0; i < len(args); i++ {
		if !args[i].literal {
			r.doubt("the arguments of find don't say clearly what it runs")
			return
		}
		switch args[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && !(args[end].literal && (args[end].text == ";" || args[end].text == "+" && args[end-1].text == "{}")) {
				end++
			}
			r.run(marked(args[i+1:end], []string{"{}"}))
			i = end
		}
	}
}

// Shells by what they read: POSIX says enough of the first, while the others
// have a language of their own, so what is read in their texts isn't all.
var shells = map[string]bool{"sh": true, "dash": true, "ash": true, "bash": false, "rbash": false, "zsh": false, "ksh": false,
	"mksh": false, "fish": false, "csh": false, "tcsh": false, "yash": false, "hush": false}

// shell reads the arguments of a shell: sh -c TEXT is understood, a script or the
// input that it would read is not.
func (r *reading) shell(name string, args []word) {
	posix := shells[strings.ToLower(name)]
	code := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.literal:
			r.doubt("%s runs a text that is known only then", name)
			return
		case len(a.text) > 1 && (a.text[0] == '-' || a.text[0] == '+') && a.text != "--" && !strings.HasPrefix(a.text, "--"):
			if strings.Trim(a.text[1:], "aceufvxno") != "" { // -l and -i read files first, -s its input
				r.doubt("%s is told more than which text to run", name)
			}
			code = code || a.text[0] == '-' && strings.Contains(a.text, "c")
			if strings.HasSuffix(a.text, "o") {
				i++ // the name of an option
			}
			continue
		case strings.HasPrefix(a.text, "--") && a.text != "--":
			r.doubt("%s is told more than which text to run", name)
			continue
		case a.text == "--":
			continue
		case !code:
			r.doubt("%s runs what stands in a file", name)
			return
		}
		r.code(a, name)
		if !posix {
			r.doubt("%s reads more into a text than POSIX says", name)
		}
		return
	}
	r.doubt("%s runs what it reads from its input", name)
}
