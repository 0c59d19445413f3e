package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A looker is a program that only looks, as far as its listed options go. What
// isn't listed here is not known to be harmless. Options have to stand before all
// other arguments, because some systems read a later one as a file's name: the
// two readings of such a line can't both be checked.
type looker struct {
	flags    string                    // short options without a value; they may be joined
	values   map[byte]*regexp.Regexp   // short options with one, attached or in the next word
	long     map[string]*regexp.Regexp // long options in full; nil: without a value, else behind "="
	number   bool                      // -NUMBER is an option
	operands operands
}

// operands says what the other arguments are.
type operands int

const (
	noOperands    operands = iota // there may be none
	paths                         // files and directories
	patternsPaths                 // a pattern, unless an option gave one, then files and directories
	dateFormat                    // at most one, a format that begins with "+"
)

var (
	number = regexp.MustCompile(`^[0-9]{1,9}$`)
	count  = regexp.MustCompile(`^[-+]?[0-9]{1,9}$`)
	free   = regexp.MustCompile(`^`)
	glob   = regexp.MustCompile(`^[\w.*?-]+$`)
	colour = regexp.MustCompile(`^(never|auto)$`)
)

// lookers is the short list. A program is on it if these options let it do nothing
// but read files that are named or lie below a directory that is named, or tell
// about the system, and if it reads no configuration of its own that could make it
// do more. Each is left out as soon as one of that is in doubt:
//
//   - git: the repository's own configuration names programs (pager, fsmonitor,
//     textconv, filters, hooks, aliases) that status, log and diff run.
//   - find: -exec, -delete, -fprint and a long list that differs by system.
//   - sort, uniq, tee: write files (-o, the second operand); sort runs a program.
//   - rg, man, less, tar, sed, awk, file: run programs, or read a configuration.
//   - env, printenv, ps, and anything about /proc: show what isn't the workspace's.
//   - hostname, df: set what they show when given an operand, or hang on a mount.
var lookers = map[string]looker{
	// Lists names. Its colours and styles come from the environment, which is ours.
	"ls": {operands: paths, flags: "1AaCdFghiklmnopqrRSstux", long: map[string]*regexp.Regexp{
		"--all": nil, "--almost-all": nil, "--human-readable": nil, "--recursive": nil, "--reverse": nil, "--directory": nil, "--size": nil,
		"--color": colour, "--full-time": nil, "--group-directories-first": nil}},
	// Copies files to its output, and has no other way to write.
	"cat": {operands: paths, flags: "AbeEnstTuv", long: map[string]*regexp.Regexp{"--number": nil, "--show-all": nil, "--show-ends": nil, "--show-tabs": nil}},
	// The beginning of files.
	"head": {operands: paths, number: true, flags: "qv", values: map[byte]*regexp.Regexp{'n': count, 'c': count}, long: map[string]*regexp.Regexp{"--lines": count, "--bytes": count}},
	// The end of files; without -f, -F and --follow, which wait, and --pid.
	"tail": {operands: paths, number: true, flags: "qv", values: map[byte]*regexp.Regexp{'n': count, 'c': count}, long: map[string]*regexp.Regexp{"--lines": count, "--bytes": count}},
	// Counts; without --files0-from, which reads names from a file.
	"wc": {operands: paths, flags: "clLmw", long: map[string]*regexp.Regexp{"--lines": nil, "--words": nil, "--bytes": nil, "--chars": nil}},
	// What a directory entry says; without -L and -f.
	"stat": {operands: paths, flags: "t", values: map[byte]*regexp.Regexp{'c': free}, long: map[string]*regexp.Regexp{"--format": free, "--terse": nil}},
	// Sizes below a directory; without --files0-from and -X, which read names from
	// a file, and -L and -D, which follow links.
	"du": {operands: paths, flags: "abchkms", values: map[byte]*regexp.Regexp{'d': number}, long: map[string]*regexp.Regexp{"--max-depth": number, "--summarize": nil, "--human-readable": nil, "--total": nil}},
	// Searches; without -f and --exclude-from, which read a file in another role,
	// -R, which follows links, -P, whose patterns can take for ever, and -z.
	"grep": {operands: patternsPaths, flags: "EFGHLchilnoqrsvwxy", values: map[byte]*regexp.Regexp{'A': number, 'B': number, 'C': number, 'm': number, 'e': free},
		long: map[string]*regexp.Regexp{"--include": glob, "--exclude": glob, "--exclude-dir": glob, "--regexp": free, "--color": colour, "--max-count": number,
			"--recursive": nil, "--line-number": nil, "--ignore-case": nil, "--files-with-matches": nil, "--count": nil, "--fixed-strings": nil, "--extended-regexp": nil, "--word-regexp": nil, "--invert-match": nil}},
	// Where it is: always the workspace.
	"pwd": {flags: "LP"},
	// The time; any other operand, and -s, would set the clock, -f and -r look at files.
	"date": {operands: dateFormat, flags: "uR", long: map[string]*regexp.Regexp{"--utc": nil, "--rfc-email": nil}},
	// Who the command runs as; without an operand, which asks about others.
	"id": {flags: "Ggnru"},
	// The same in one word.
	"whoami": {},
	// The kernel's name and version. The name of the machine is in -a and -n.
	"uname": {flags: "aimnoprsv"},
}

// ReadOnlyPrograms are the names on the short list, sorted.
func ReadOnlyPrograms() []string {
	var names []string
	for name := range lookers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// notReadOnly says in a clause why a literal command isn't known to only look;
// "" if it is.
func notReadOnly(argv []string) string {
	l, ok := lookers[argv[0]] // by its bare name: a path could be a file of the workspace
	if !ok {
		return argv[0] + " is not on the short list of programs that only look"
	}
	rest, patterns, why := l.options(argv[1:])
	if why != "" {
		return fmt.Sprintf("%s is not known to only look with %s", argv[0], why)
	}
	switch l.operands {
	case paths:
	case patternsPaths:
		if patterns == 0 && len(rest) > 0 {
			rest = rest[1:]
		}
	case dateFormat:
		if len(rest) == 1 && strings.HasPrefix(rest[0], "+") {
			return ""
		}
		fallthrough
	default:
		if len(rest) > 0 {
			return fmt.Sprintf("%s is not known to only look with the argument %s", argv[0], rest[0])
		}
	}
	for _, p := range rest {
		if !inWorkspace(p) {
			return p + " may lie outside the workspace"
		}
	}
	return ""
}

// options reads the options at the beginning. It returns what follows them, and
// how many of them gave a pattern.
func (l looker) options(args []string) (rest []string, patterns int, why string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return args[i+1:], patterns, ""
		case !strings.HasPrefix(arg, "-"):
			for _, later := range args[i:] {
				if strings.HasPrefix(later, "-") {
					return nil, 0, "an option or a dash behind its first argument"
				}
			}
			return args[i:], patterns, ""
		case l.number && number.MatchString(arg[1:]):
			continue
		}
		next, pattern, known := l.option(arg, args[i+1:])
		if !known {
			return nil, 0, "the option " + arg
		}
		if next {
			i++
		}
		if pattern {
			patterns++
		}
	}
	return nil, patterns, ""
}

// option reads one word of options. next says that it took the word behind it.
func (l looker) option(arg string, behind []string) (next, pattern, known bool) {
	if strings.HasPrefix(arg, "--") {
		name, value, attached := strings.Cut(arg, "=")
		want, listed := l.long[name]
		return false, name == "--regexp", listed && attached == (want != nil) && (want == nil || want.MatchString(value))
	}
	for i := 1; i < len(arg); i++ {
		want, valued := l.values[arg[i]]
		switch {
		case valued && i+1 < len(arg):
			return false, arg[i] == 'e', want.MatchString(arg[i+1:])
		case valued:
			return true, arg[i] == 'e', len(behind) > 0 && want.MatchString(behind[0])
		case strings.IndexByte(l.flags, arg[i]) < 0:
			return false, false, false
		}
	}
	return false, false, len(arg) > 1
}

// inWorkspace tells whether a path, taken from the workspace, stays in it by its
// text. Where links lead only the system can say; so an unconfined shell never
// gets to use this.
func inWorkspace(p string) bool {
	return p != "" && !strings.ContainsAny(p[:1], "/~-+") && !slices.Contains(strings.Split(p, "/"), "..")
}
