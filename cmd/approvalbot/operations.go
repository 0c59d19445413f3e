package main

import (
	"fmt"
	"strings"

	"approvalbot/internal/slackui"
)

// What operators see of the process in their Home tab.

// conditions are what has to be well, as in /readyz.
func (a *app) conditions() (all []slackui.Condition) {
	l := a.settings.Language
	names := map[string]string{"journal": l.T("journal"), "slack": "Slack", "model": l.T("model")}
	for _, c := range a.checks() {
		if name := names[c.Name]; name != "" {
			c.Name = name
		}
		all = append(all, slackui.Condition(c))
	}
	return all
}

// facts are the settings that matter when something goes on that shouldn't, by the names under which they are set. None of
// them is a secret.
func (a *app) facts() []slackui.Fact {
	s := a.settings
	list := func(words []string, none string) string {
		if len(words) == 0 {
			return none
		}
		return strings.Join(words, ", ")
	}
	rules := a.rules.Current().Settings()
	return []slackui.Fact{
		{Name: "APPROVALBOT_APPROVERS", Value: list(s.Approvers, s.Language.T("nobody"))},
		{Name: "APPROVALBOT_QUORUM", Value: fmt.Sprint(s.Quorum)},
		{Name: "APPROVALBOT_APPROVAL_TIMEOUT", Value: s.Timeout.String()},
		{Name: "APPROVALBOT_APPROVAL_POLICY", Value: string(rules.ApprovalPolicy)},
		{Name: "APPROVALBOT_SANDBOX", Value: string(rules.SandboxMode)},
		{Name: "APPROVALBOT_POLICY_FILE", Value: firstNonEmpty(s.PolicyFile, s.Language.T("none"))},
		{Name: "APPROVALBOT_REQUESTERS", Value: list(s.Requesters, "members")},
		{Name: "APPROVALBOT_CHANNELS", Value: list(s.Channels, s.Language.T("every channel that the bot is in"))},
		{Name: "APPROVALBOT_MODEL", Value: a.modelName},
		{Name: "approvalbot", Value: version()},
	}
}
