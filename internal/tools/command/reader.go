package command

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A reader makes of a program's arguments what it would run. It notes the
// programs that it finds, and doubts what it doesn't understand.
type reader func(r *reading, name string, args []word)

// readers are the programs that are known, each with what reads its arguments.
var readers = make(map[string]reader)

func init() {
	for _, name := range ordinary {
		readers[name] = (*reading).ordinary
	}
	for name, w := range wrappers {
		readers[name] = func(r *reading, name string, args []word) { r.wrapped(name, w, args) }
	}
	for name := range shells {
		readers[name] = (*reading).shell
	}
	readers["command"] = (*reading).lookup
	readers["find"] = (*reading).find
	readers["trap"] = (*reading).trap
	readers["set"] = (*reading).set
	readers["export"] = (*reading).export
	readers["awk"], readers["gawk"], readers["mawk"], readers["nawk"] = (*reading).awk, (*reading).awk, (*reading).awk, (*reading).awk
	readers["sed"], readers["gsed"] = (*reading).sed, (*reading).sed
	for _, name := range []string{"read", "readonly", "local", "unset", "getopts", "wait"} {
		readers[name] = (*reading).variables
	}
	for _, name := range []string{"test", "[", "printf"} {
		readers[name] = (*reading).subscripts
	}
	for _, name := range unclear {
		readers[name] = (*reading).notUnderstood
	}
	for _, name := range interpreters {
		readers[name] = (*reading).interpreter
	}
	for name, options := range told {
		readers[name] = func(r *reading, name string, args []word) { r.options(name, args, options) }
	}
	readers["tar"] = (*reading).tar
	readers["git"] = (*reading).git
}

// Names that carry a version: python3.12, lua5.4.
const versionTail = "0123456789.-"

// readerOf returns what reads the arguments of the program of that name. Some
// file systems don't tell case; the programs of GNU have a g in front on some
// systems.
func readerOf(base string) reader {
	base = strings.ToLower(base)
	for _, name := range []string{base, strings.TrimRight(base, versionTail), strings.TrimPrefix(base, "g")} {
		if read, ok := readers[name]; ok {
			return read
		}
	}
	if strings.HasPrefix(base, "ld-") || strings.HasPrefix(base, "ld.so") { // the dynamic linker runs what it is given
		return (*reading).notUnderstood
	}
	return (*reading).stranger
}

// stranger reads the arguments of a program that isn't known. It is taken for one
// that runs no other, unless its arguments look as those of a wrapper do: one is
// the name of a well-known program, or a command follows "--".
func (r *reading) stranger(name string, args []word) {
	for i, a := range args {
		_, value, _ := strings.Cut(a.text, "=")
		if a.literal && (wellKnown(a.text) || wellKnown(value) || a.text == "--" && i+1 < len(args) && !strings.HasPrefix(args[i+1].text, "-")) {
			r.doubt("%s may run a program that its arguments name", name)
			return
		}
	}
}

// wellKnown tells whether a text begins with the name of a program that is known.
func wellKnown(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	_, known := readers[strings.ToLower(path.Base(first))]
	return known && first != "." && first != "" && first != ":"
}

// ordinary are the usual programs and words of the shell that run no other,
// whatever they are told.
var ordinary = strings.Fields(`
	: true false echo pwd cd pushd popd exit return break continue shift times umask ulimit type which whereis kill jobs bg fg unalias
	ls cat head tail wc stat date id whoami uname hostname uptime free df du ps pgrep pkill killall top tty who groups nproc arch getent locale
	cp mv rm rmdir mkdir ln touch chmod chown chgrp install mktemp truncate dd sync mount umount shred unlink link mkfifo mknod
	grep egrep fgrep cut tr uniq paste join comm diff cmp patch fold fmt nl tac rev expand unexpand tsort shuf seq yes sleep column
	basename dirname realpath readlink file strings od xxd hexdump base64 md5sum sha1sum sha256sum sha512sum cksum sum
	gzip gunzip zcat bzip2 bunzip2 xz unxz zstd unzip jq yq tee reboot shutdown halt poweroff
	useradd userdel usermod groupadd passwd ping dig host nslookup ifconfig netstat ss curl
	mkfs fdisk parted lsblk blkid swapoff swapon fsck wipefs dropdb createdb redis-cli terraform aws gcloud az
	service journalctl loginctl pip pip3 pytest brew dnf yum apk pacman snap`)

func (r *reading) ordinary(string, []word) {}

// unclear are programs and words of the shell that run what their arguments or
// their input say, in a language or a place that isn't read here.
var unclear = []string{
	// of the shell; some only of bash
	"eval", ".", "source", "alias", "builtin", "enable", "hash", "bind", "complete", "compgen", "mapfile", "readarray",
	"declare", "typeset", "let", "shopt", "fc", "coproc",
	// elsewhere: on another machine, in a container, at another time, as somebody else
	"ssh", "rsh", "mosh", "lxc", "nsenter", "unshare", "bwrap", "firejail", "systemd-run",
	"at", "batch", "crontab", "su", "runuser", "pkexec", "machinectl", "vagrant", "ansible", "screen", "tmux",
	// programs that run programs
	"parallel", "watch", "script", "expect", "strace", "ltrace", "gdb", "lldb", "valgrind", "perf", "flock", "setarch", "linux32", "linux64",
	"prlimit", "unbuffer", "entr", "socat", "nc", "ncat", "start-stop-daemon", "run-parts", "npx", "bunx", "pnpm", "uvx", "pipx",
	"dbus-run-session", "xvfb-run", "fakeroot", "proot", "numactl", "catchsegv", "setpriv", "capsh", "chpst", "runit", "daemonize",
	// editors and pagers, which can be told to
	"vi", "vim", "nvim", "view", "ex", "ed", "emacs", "less", "more", "man", "gpg-connect-agent", "mail", "mailx",
}

func (r *reading) notUnderstood(name string, _ []word) {
	r.doubt("%s runs what its arguments or its input tell it to", name)
}

// interpreters run a file, which counts as one program, or a text in a language
// that isn't read here.
var interpreters = []string{"python", "pypy", "perl", "ruby", "node", "nodejs", "php", "lua", "luajit", "tclsh", "wish", "rscript", "guile", "osascript", "pwsh", "deno", "bun"}

func (r *reading) interpreter(name string, args []word) {
	switch {
	case len(args) == 1 && args[0].literal && slices.Contains([]string{"--version", "-V", "-v", "--help", "-h"}, args[0].text):
	case len(args) > 0 && args[0].literal && usualName(args[0].text) && strings.Contains(strings.Trim(path.Base(args[0].text), "."), "."): // a file's name, not a word for what to do
	default:
		r.doubt("%s runs a text in a language of its own", name)
	}
}

// An option of a program that names another program to run.
type option struct {
	short   string // letters, alone or in a cluster
	long    []string
	words   []string // words that are commands of the program, and run others
	assigns bool     // NAME=VALUE can name one
}

// containers are the programs that run others in a container, or for one.
var containers = option{long: []string{"--entrypoint", "--health-cmd", "--post-renderer"},
	words: []string{"exec", "run", "create", "update", "compose", "debug", "edit", "attach", "plugin", "plugins", "set-credentials"}}

// told are programs that run another only if an option says so. Long options are
// recognised abbreviated, too.
var told = map[string]option{
	"tar":     {short: "IF", long: []string{"--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command", "--info-script", "--new-volume-script"}},
	"bsdtar":  {long: []string{"--use-compress-program"}},
	"cpio":    {long: []string{"--rsh-command"}},
	"rsync":   {short: "e", long: []string{"--rsh", "--rsync-path"}},
	"scp":     {short: "SoF", long: nil},
	"sftp":    {short: "SoFDb", long: nil},
	"sort":    {long: []string{"--compress-program"}},
	"rg":      {long: []string{"--pre", "--hostname-bin"}},
	"fd":      {short: "xX", long: []string{"--exec", "--exec-batch"}},
	"fdfind":  {short: "xX", long: []string{"--exec", "--exec-batch"}},
	"zip":     {short: "T", long: []string{"--unzip-command", "--test"}},
	"split":   {long: []string{"--filter"}},
	"make":    {short: "E", long: []string{"--eval"}, assigns: true}, // CC=…, SHELL=…
	"go":      {long: []string{"-toolexec", "-exec", "-vettool", "-ldflags", "-gcflags"}, words: []string{"run", "generate", "tool"}},
	"cargo":   {long: []string{"--config"}},
	"npm":     {words: []string{"exec", "x", "explore"}, long: []string{"--script-shell", "--call"}, short: "c"},
	"yarn":    {words: []string{"exec", "dlx"}},
	"gcc":     {long: []string{"-wrapper"}},
	"cc":      {long: []string{"-wrapper"}},
	"wget":    {long: []string{"--use-askpass", "--execute"}, short: "e"},
	"install": {long: []string{"--strip-program"}},
	"helm":    {long: []string{"--post-renderer"}, words: []string{"plugin"}},
	"gh":      {words: []string{"alias", "extension"}},
	"docker":  containers, "podman": containers, "nerdctl": containers, "kubectl": containers, "oc": containers,
	"apt":       {short: "oc", long: []string{"--option", "--config-file"}},
	"apt-get":   {short: "oc", long: []string{"--option", "--config-file"}},
	"dpkg":      {long: []string{"--pre-invoke", "--post-invoke"}},
	"tcpdump":   {short: "z"},
	"mysql":     {short: "e", long: []string{"--execute", "--pager"}},
	"psql":      {short: "c", long: []string{"--command"}},
	"sqlite3":   {short: "c", long: []string{"-cmd"}},
	"systemctl": {words: []string{"edit"}},
	"openssl":   {long: []string{"-engine"}},
}

// options looks for the options that name a program, and for words that could
// turn out to be one.
func (r *reading) options(name string, args []word, o option) {
	if slices.ContainsFunc(args, o.matches) {
		r.doubt("the arguments of %s can tell it to run another program", name)
	}
}

func (o option) matches(w word) bool {
	if !w.literal {
		return true
	}
	given, _, _ := strings.Cut(w.text, "=")
	switch {
	case slices.Contains(o.words, w.text), o.assigns && given != w.text:
		return true
	case len(given) > 2 && slices.ContainsFunc(o.long, func(long string) bool { return strings.HasPrefix(long, given) || strings.HasPrefix(w.text, long) }):
		return true
	case strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--"):
		return strings.ContainsAny(w.text, o.short)
	}
	return false
}

// tar takes its options without a dash, too.
func (r *reading) tar(name string, args []word) {
	if len(args) > 0 && args[0].literal && !strings.HasPrefix(args[0].text, "-") {
		args = append([]word{{text: "-" + args[0].text, literal: true}}, args[1:]...)
	}
	r.options(name, args, told["tar"])
}

// gitGlobal are the options before git's command that name no program. What -C and
// --git-dir name is a repository, and so a file.
var gitGlobal = wrapper{flags: "Ppv", values: "C", long: []string{"--no-pager", "--paginate", "--version", "--bare", "--literal-pathspecs", "--no-optional-locks", "--git-dir", "--work-tree"}}

// gitCommands are git's commands that can be told to run a program.
var gitCommands = map[string]option{
	"clone":     {short: "cu", long: []string{"--upload-pack", "--config", "--template"}},
	"fetch":     {long: []string{"--upload-pack"}},
	"pull":      {long: []string{"--upload-pack"}},
	"ls-remote": {long: []string{"--upload-pack", "--exec"}},
	"push":      {long: []string{"--receive-pack", "--exec"}},
	"archive":   {long: []string{"--exec"}},
	"rebase":    {short: "x", long: []string{"--exec"}},
	"grep":      {short: "O", long: []string{"--open-files-in-pager"}},
	"init":      {long: []string{"--template"}},
}

// gitUnclear are git's commands that are there to run programs, or to say which
// ones other commands run.
var gitUnclear = []string{"bisect", "filter-branch", "filter-repo", "submodule", "difftool", "mergetool", "config", "send-email", "instaweb",
	"for-each-repo", "hook", "daemon", "credential", "remote-ext", "upload-pack", "receive-pack", "shell", "web--browse", "p4", "svn", "fast-import", "alias"}

func (r *reading) git(name string, args []word) {
	rest, _, ok := gitGlobal.rest(args)
	transport := slices.ContainsFunc(args, func(w word) bool { return strings.Contains(w.text, "ext::") })
	switch {
	case !ok, transport, len(rest) > 0 && (!rest[0].literal || slices.Contains(gitUnclear, rest[0].text)):
		r.doubt("the arguments of %s can tell it to run another program", name)
	case len(rest) > 0:
		if o, ok := gitCommands[rest[0].text]; ok {
			r.options(name, rest[1:], o)
		}
	}
}

// trap runs its first argument later.
func (r *reading) trap(name string, args []word) {
	if len(args) > 0 && args[0].literal && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) < 2 || args[0].literal && (args[0].text == "" || args[0].text == "-") {
		return
	}
	r.code(args[0], name)
}

// set changes what later words mean only with some options.
func (r *reading) set(_ string, args []word) {
	known := regexpSet.MatchString
	for i, a := range args {
		switch {
		case a.literal && a.text == "--":
			return
		case a.literal && known(a.text):
		case i > 0 && a.literal && slices.Contains([]string{"pipefail", "errexit", "nounset", "noglob", "xtrace", "verbose", "noclobber"}, a.text):
		default:
			r.doubt("set changes how the rest is read")
			return
		}
	}
}

var regexpSet = regexp.MustCompile(`^[-+][eufxvC]*o?$`)

// export hands variables to every program that follows.
func (r *reading) export(_ string, args []word) {
	for _, a := range args {
		name, value, set := strings.Cut(a.text, "=")
		switch {
		case !a.literal:
			r.doubt("a variable in it is known only when it runs")
		case a.text != "-p":
			r.environment(name, word{text: value, literal: set}) // without one it has a value already
		}
	}
}

// variables reads the arguments of what sets or clears variables by name.
func (r *reading) variables(name string, args []word) {
	for _, a := range args {
		variable, _, _ := strings.Cut(a.text, "=")
		switch {
		case !a.literal:
			r.doubt("the name of a variable in it is known only when it runs")
		case strings.ContainsAny(a.text, "[`$"):
			r.doubt("%s may compute a subscript, and run what stands there", name)
		default:
			r.variable(variable)
		}
	}
}

// subscripts: bash computes the subscript of a variable's name, wherever such a
// name may stand, and runs the substitutions in it.
func (r *reading) subscripts(name string, args []word) {
	for _, a := range args {
		if a.literal && (a.text == "-v" || a.text == "-R" || strings.Contains(a.text, "[") && strings.ContainsAny(a.text, "$`")) {
			r.doubt("%s may compute a subscript, and run what stands there", name)
		}
	}
}

// steering are the shell's own variables that change what a name stands for or
// what else is run.
var steering = []string{"PATH", "IFS", "ENV", "BASH_ENV", "CDPATH", "HOME", "SHELL", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT",
	"PS0", "PS1", "PS2", "PS4", "PROMPT_COMMAND", "FCEDIT", "EDITOR", "VISUAL", "PAGER", "EXECIGNORE", "GLOBIGNORE", "BASH_COMPAT"}

// variable notes that the shell sets a variable of its own.
func (r *reading) variable(name string) {
	if slices.Contains(steering, name) || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") {
		r.doubt("it sets a variable that changes which programs run")
	}
}

// harmless are variables that are known to name no program to any program.
// Every other could: there is one for nearly every tool.
var harmless = []string{"LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI", "DEBUG", "VERBOSE",
	"CGO_ENABLED", "GOOS", "GOARCH", "GOMAXPROCS", "NODE_ENV", "RAILS_ENV", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "DEBIAN_FRONTEND"}

// environment notes that a variable is handed to programs. A number or a switch
// names no program, whatever the variable is for.
func (r *reading) environment(name string, value word) {
	r.variable(name)
	known := slices.Contains(harmless, name) || strings.HasPrefix(name, "LC_") && syntax.ValidName(name)
	if !known && !(value.literal && regexpSwitch.MatchString(value.text)) {
		r.doubt("it sets a variable for other programs, which can change what they run")
	}
}

var regexpSwitch = regexp.MustCompile(`^([0-9]{1,9}|true|false|yes|no|on|off)$`)

// awk has system(), pipes, functions called by name, and extensions.
func (r *reading) awk(name string, args []word) {
	for _, a := range args {
		if !a.literal || strings.ContainsAny(a.text, "|@") || strings.Contains(a.text, "system") ||
			strings.HasPrefix(a.text, "-") && !regexpAwk.MatchString(a.text) {
			r.doubt("%s runs a text in a language of its own", name)
		}
	}
}

var regexpAwk = regexp.MustCompile(`^-(F.*|v.*|-)$`)

// sed's e runs commands; only scripts that are plainly without are understood.
func (r *reading) sed(name string, args []word) {
	script := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.literal && a.text == "--sandbox":
			return // it refuses e, r and w
		case a.literal && (a.text == "" || regexpSedFlags.MatchString(a.text)): // some take -i '' for "no copy"
			continue
		case a.literal && a.text == "-e" && i+1 < len(args):
			i++
		case a.literal && script && !strings.HasPrefix(a.text, "-"):
			continue // a file
		}
		if !harmlessSed(args[i]) {
			r.doubt("%s runs a text in a language of its own", name)
			return
		}
		script = true
	}
}

var (
	regexpSedFlags = regexp.MustCompile(`^-[nErsuz]*(i[\w.]*)?$`)
	regexpSed      = regexp.MustCompile(`^\s*(\d+|\$|/[\w .-]*/)?(,\s*(\d+|\$|/[\w .-]*/))?\s*([pdq=]|s/([^/\\\n]|\\[^\n])*/([^/\\\n]|\\[^\n])*/[gpI]*)?\s*$`)
)

// harmlessSed tells whether a script only prints, deletes and replaces.
func harmlessSed(w word) bool {
	if !w.literal {
		return false
	}
	for part := range strings.SplitSeq(w.text, ";") {
		if !regexpSed.MatchString(part) {
			return false
		}
	}
	return true
}
