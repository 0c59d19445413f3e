package main

import (
	"approvalbot/internal/agent"
	"approvalbot/internal/approvals"
	"approvalbot/internal/redact"
)

// inForce is what grants have to fit at every moment besides their calls.
func (a *app) inForce(cfg agent.Config) approvals.InForce {
	return approvals.InForce{
		PolicyHash: func() string { return cfg.Policy.Current().Hash() },
		ToolHash:   func(tool string) (string, bool) { return cfg.Tools.Set().Hash(tool) },
	}
}

// hides tells of a text whether the redactor would hide anything in it.
func hides(r *redact.Redactor) func(string) bool {
	if r == nil {
		r = redact.New()
	}
	return func(text string) bool {
		_, hits := r.Text(text)
		return len(hits) > 0
	}
}
