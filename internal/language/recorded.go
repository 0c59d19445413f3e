package language

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// What was journalled in words was put into English words once. Where approvalbot always uses the same ones, other
// languages have them too: as a whole, or with something in them. These are the ones with something in them, without the
// full stop: %s stands for anything, which is translated if it is a recorded sentence itself. A test finds each of them,
// and of the whole ones, in the sources that write them.
var patterns = []string{
	// why an ask ended without people (approvals, agent)
	"nobody answered within %s", "%s hours", "%s minutes", "%s seconds",
	"there is no user group with the id %s", "the user group %s has no members", "there is nobody with the id %s",
	"%s is %s, and only full members count (%s)", "%s is %s, and only full members count",
	"%s people have to approve, and only %s could: %s", "%s people have to approve, and only %s could",
	"the card could not be posted in Slack (%s)",
	"The policy forbids it: %s", "The run was ended before this call could start: %s", "stopped by %s",
	"The tool %s is not there any more, so the call was not started",
	"The definition of the tool %s has changed since this run began, so the call was not started. The next run has the new definition",
	"The policy has changed since this was approved. %s",

	// how a run ended (agent)
	"It was still not done after %s rounds, which is the limit", "%s was called %s times with the same arguments and the same result",
	"people denied %s requests in a row", "%s requests in a row were denied, so I stopped. What should I do instead?",

	// why it asks (policy)
	"%s %s, so it needs approval", "%s %s, and every call needs approval", "Every call needs approval, %s too",
	"The rule %s asks about this call of %s", "The rule %s denies this call of %s",
	"Every call of %s asks people first: %s", "%s can change things, and the sandbox is read_only",

	// how a call failed that people are told about most (tools)
	"There is no %s in the workspace", "%s contains \"..\"; give the path from the top of the workspace",
	"%s is an absolute path; give one relative to the workspace", "%s belongs to approvalbot itself; tools may not touch it",
	"%s leads out of the workspace", "%s is a directory, not a file", "%s is not a directory",
	"%s has %s bytes; %s is the most that can be worked with", "%s exists already; nothing was changed. Read it, and name its version to replace it",
	"The command ended with exit status %s",

	// why a file of a message could not be taken (slackui, agent)
	"The file has %s bytes; %s is the most that is taken", "Slack didn't say where the file is (%s)",
	"A message may bring %s files at most", "The files of a message may have %s bytes together",

	// why somebody may not (approvals)
	"Only people can %s", "Nobody is listed who may %s", "Nobody can %s", "A token without a name can't %s",
	"Nobody is listed who can %s here (APPROVALBOT_OPERATORS). On its machine, approvalbot pause does it",
	"This token names no person, so it doesn't count where %s people have to approve",
	"Changed like this, nobody could approve it: %s",
	"You are not one of those who can %s: %s", "You are not one of those who can %s",
	"People from other organizations can't %s", "Guests can't %s", "Bots can't %s", "Deactivated users can't %s",
	"It could not be found out whether you can %s, so this doesn't count. Try again in a moment",
}

// acts are what people are refused, as it stands in those sentences. Only with one of these is such a sentence ours: of a
// rule's own "Bots can't touch production" half would be translated.
var acts = []string{
	"approve this", "deny this", "stop this run", "start runs here", "use this", "allow calls in advance here", "revoke this grant",
	"pause or resume approvalbot", "decide about another person's message",
}

// maxRecorded is how long a recorded sentence of ours may be; what is longer is somebody else's.
const maxRecorded = 2000

// Recorded translates a sentence that was journalled in English, if it is one that we always say in the same words. It may
// stand with its full stop or without. Anything else comes back as it is.
func (l Language) Recorded(sentence string) string {
	if l != Chinese || sentence == "" || len(sentence) > maxRecorded {
		return sentence
	}
	if t, ok := chinese[sentence]; ok {
		return t
	}
	if body, ended := strings.CutSuffix(sentence, "."); ended {
		if t := l.Recorded(body); t != body {
			return t + "。"
		}
		return sentence
	}
	for i, form := range recordedForms() {
		found := form.FindStringSubmatch(sentence)
		if found == nil {
			continue
		}
		parts := make([]any, len(found)-1)
		for j, part := range found[1:] {
			parts[j] = l.Recorded(part)
		}
		return fmt.Sprintf(chinese[patterns[i]], parts...)
	}
	return sentence
}

// recordedForms are the patterns as expressions.
var recordedForms = sync.OnceValue(func() []*regexp.Regexp {
	quoted := make([]string, len(acts))
	for i, act := range acts {
		quoted[i] = regexp.QuoteMeta(act)
	}
	act := "(" + strings.Join(quoted, "|") + ")"
	forms := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		form := regexp.QuoteMeta(p)
		for _, modal := range []string{" can ", " can't ", " may "} {
			form = strings.ReplaceAll(form, modal+"%s", modal+act)
		}
		forms[i] = regexp.MustCompile(`(?s)\A` + strings.ReplaceAll(form, "%s", "(.+?)") + `\z`)
	}
	return forms
})
