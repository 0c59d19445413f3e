package mcp

import (
	"strings"

	"approvalbot/internal/redact"
)

// judge knows a secret by its form, or by the name that it is the value of.
var judge = redact.New()

// suspect takes value for a secret if the redactor would hide something in context, where it stands under its name.
func (e *entry) suspect(context, value string) {
	if _, hits := judge.Text(context); len(hits) == 0 {
		return
	}
	e.secrets = append(e.secrets, value)
	// "Bearer …", "Basic …": without the word in front it is a secret, too.
	if scheme, rest, ok := strings.Cut(value, " "); ok && len(scheme) <= len("Bearer")+2 && !strings.Contains(rest, " ") {
		e.secrets = append(e.secrets, rest)
	}
}

// argSecrets finds secrets among arguments: a value of its own behind an option, or behind its =.
func (e *entry) argSecrets(args []string) {
	for i, arg := range args {
		if i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.HasPrefix(arg, "-") {
			e.suspect(args[i-1]+" "+arg, arg)
		}
		if _, value, ok := strings.Cut(arg, "="); ok {
			e.suspect(arg, value)
		} else {
			e.suspect(arg, arg)
		}
	}
}
