package main

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"approvalbot/internal/spelling"
)

// envFile is read by serve and doctor, from the current directory.
const envFile = ".env"

// warnings are what doesn't keep the bot from working but is hardly meant: names that nobody reads, and tokens that
// others can read. A misspelt APPROVALBOT_APPROVERS must not pass in silence.
func warnings(environ []string) []string {
	out := unknownNames(environ)
	if text := exposedFile(envFile); text != "" {
		out = append(out, text)
	}
	return out
}

// unknownNames finds the names in an environment that look like settings and aren't: all that begin as ours do, and
// others that are a typing error away from one.
func unknownNames(environ []string) (out []string) {
	var known []string
	keys := map[string]string{} // by the short form that other programs have for them
	for _, f := range settingFields() {
		name := f.Tag.Get("envconfig")
		known = append(known, name)
		if provider, ok := strings.CutSuffix(name, "_API_KEY"); ok {
			keys[provider+"_KEY"] = name
		}
	}
	slices.Sort(environ)
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(known, name) {
			continue
		}
		if right := keys[strings.ToUpper(name)]; right != "" {
			if !isSet(environ, right) { // else it is another program's
				out = append(out, fmt.Sprintf("%s is not a setting and has no effect: did you mean %s?", name, right))
			}
			continue
		}
		right, apart := spelling.Closest(name, known)
		switch {
		case apart <= 2 || strings.HasPrefix(name, "APPROVALBOT_") && apart <= 4:
			out = append(out, fmt.Sprintf("%s is not a setting and has no effect: did you mean %s?", name, right))
		case strings.HasPrefix(name, "APPROVALBOT_"):
			out = append(out, fmt.Sprintf("%s is not a setting of this version and has no effect; approvalbot serve --help lists them", name))
		}
	}
	return out
}

// isSet tells whether a name has a value in an environment.
func isSet(environ []string, name string) bool {
	return slices.ContainsFunc(environ, func(entry string) bool { return len(entry) > len(name)+1 && strings.HasPrefix(entry, name+"=") })
}

// exposedFile says so if a file with secrets in it can be read by other users.
func exposedFile(file string) string {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil || !holdsSecret(string(text)) {
		return ""
	}
	return fmt.Sprintf("%s holds tokens and other users of this machine can read it (mode %04o): chmod 600 %[1]s", file, info.Mode().Perm())
}

// holdsSecret looks for names of tokens and keys that have a value.
func holdsSecret(text string) bool {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		name = strings.TrimSpace(name)
		secret := strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_KEY")
		if secret && !strings.HasPrefix(name, "#") && strings.Trim(strings.TrimSpace(value), `"'`) != "" {
			return true
		}
	}
	return false
}

// warn logs the warnings, before anything else is said.
func warn(log *slog.Logger, texts []string) {
	for _, text := range texts {
		log.Warn(text)
	}
}
