package main

import (
	"context"
	"errors"
	"fmt"

	"approvalbot/internal/agent"
	"approvalbot/internal/api"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/slackui"
)

// apiAgent is the agent as the HTTP API knows it.
type apiAgent struct{ *agent.Agent }

func (a apiAgent) ReceiveIfIdle(ctx context.Context, e ledger.Event) (ledger.Event, error) {
	written, err := a.Agent.ReceiveIfIdle(ctx, e)
	if errors.Is(err, agent.ErrBusy) {
		err = api.ErrBusy
	}
	return written, err
}

func (a apiAgent) Stop(ctx context.Context, run string, by ledger.Actor) error {
	err := a.Agent.Stop(ctx, run, by)
	if errors.Is(err, agent.ErrNotRunning) {
		return api.ErrNotRunning
	}
	return err
}

func (a apiAgent) Report(ctx context.Context, run string, by ledger.Actor, o *ledger.OutcomeReported) error {
	err := a.Agent.Report(ctx, run, by, o)
	if errors.Is(err, agent.ErrNotStarted) {
		return api.ErrNotStarted
	}
	return err
}

// serveAPI makes the HTTP API of a bot whose other parts are there.
func (a *app) serveAPI(client *slackui.Client, rules *policy.Policy, w wiring) (err error) {
	tokens, err := a.settings.tokens()
	if err != nil {
		return err
	}
	a.api, err = api.New(api.Config{
		Tokens: tokens, Journal: a.journal, Approvals: a.approvals, Grants: a.grants, Agent: apiAgent{a.agent},
		Model: a.modelName, Settings: rules.Settings(), Team: client.Team, Channels: a.settings.openChannels,
		UserName: func(ctx context.Context, user string) string {
			p, err := client.Directory().Person(ctx, ledger.Person{Team: client.Team, ID: user})
			if err != nil {
				return ""
			}
			return p.Name
		},
		Redactor: w.redactor, Logger: w.log, Ready: a.checks(), Details: a.details, Metrics: a.metrics.Handler(w.log),
	})
	return err
}

// tokens are those of the file and the one of the environment, which is called default. [api.New] compares them.
func (s *Settings) tokens() ([]api.Token, error) {
	tokens, _, err := s.fileTokens()
	if err != nil {
		return nil, err
	}
	if s.APIToken == "" {
		return tokens, nil
	}
	return append(tokens, api.DefaultToken(s.APIToken)), nil
}

func (s *Settings) fileTokens() ([]api.Token, []string, error) {
	if s.APITokensFile == "" {
		return nil, nil, nil
	}
	tokens, secrets, err := api.LoadTokens(s.APITokensFile)
	if err != nil {
		return nil, nil, fmt.Errorf("APPROVALBOT_API_TOKENS_FILE: %w", err)
	}
	return tokens, secrets, nil
}
