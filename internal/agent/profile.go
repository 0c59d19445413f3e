package agent

import (
	"context"
	"fmt"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
	"approvalbot/internal/policy"
)

// A Profile is what a run works with, where its place has something of its own. What is empty, the agent's configuration
// says.
type Profile struct {
	Name         string
	Model        model.Model
	Instructions string
	Tools        ToolSource
	Workspace    string          // the directory that the tools work in
	Settings     policy.Settings // count where they are stricter than the policy in force
	Release      func()          // called once, when the run is over; nil: nothing to let go of
}

// A ProfileSource finds the profile of a place and a session. An error ends the run with the error's words, which people
// read: a run that can't have what it should work with does nothing.
type ProfileSource interface {
	For(ctx context.Context, place ledger.Place, session string) (Profile, error)
}

// profileOf is what a run works with. A program's own ask has none: no model and no tools of ours take part.
func (a *Agent) profileOf(ctx context.Context, session string, m *ledger.MessageReceived) (Profile, error) {
	p := Profile{}
	var err error
	if a.Profiles != nil && m.Ask == nil {
		if p, err = a.Profiles.For(ctx, m.Place, session); err != nil {
			err = fmt.Errorf("what is set for this place can't be used: %w", err)
		}
	}
	if p.Model == nil {
		p.Model = a.Model
	}
	if p.Tools == nil {
		p.Tools = a.Tools
	}
	if p.Workspace == "" {
		p.Workspace = a.Workspace
	}
	if p.Instructions == "" {
		p.Instructions = a.Config.Instructions
	}
	return p, err
}

func (p Profile) release() {
	if p.Release != nil {
		p.Release()
	}
}

// unusable is the end of a run that can't have what it should work with.
func unusable(err error) *ledger.RunFinished {
	return &ledger.RunFinished{Status: ledger.RunFailed, Code: codeProfile, Reason: sentence(capital(err.Error()))}
}
