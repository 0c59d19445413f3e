package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
)

// checkTime is how long somebody at a terminal waits for a yes or no.
const checkTime = 30 * time.Second

// Check finds out whether the model would answer, and says how it found out. It
// asks for the model's entry in the provider's list, which costs nothing; a server
// without such a list is asked for a word.
func Check(ctx context.Context, m Model) (how string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	switch m := m.(type) {
	case *anthropicModel:
		info, err := m.models.Get(ctx, m.model, anthropic.ModelGetParams{})
		if m.hasNoList(err) {
			return m.word(ctx, m)
		}
		if err != nil {
			return "", m.checked(ctx, err)
		}
		return entry(m.who(), info.Lifecycle == anthropic.ModelInfoLifecycleDeprecated), nil
	case *openaiModel:
		_, err := m.models.Get(ctx, m.model)
		if m.hasNoList(err) {
			return m.word(ctx, m)
		}
		if err != nil {
			return "", m.checked(ctx, err)
		}
		return entry(m.who(), false), nil
	}
	return "needs no network", nil
}

func entry(who string, deprecated bool) string {
	if deprecated {
		return who + " accepts the key and has the model, but will retire it (asked for its entry)"
	}
	return who + " accepts the key and has the model (asked for its entry)"
}

// hasNoList tells whether that looks like a compatible server that has no list
// of models, or one that this package can't read.
func (p *provider) hasNoList(err error) bool {
	if err == nil || !p.elsewhere {
		return false
	}
	var status *statusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented, http.StatusBadRequest:
		return true
	}
	return false
}

// word asks the model for one.
func (p *provider) word(ctx context.Context, m Model) (string, error) {
	req := Request{Messages: []Message{{Role: RoleUser, Text: "Reply with the word OK."}}, MaxTokens: 16}
	if _, err := m.Generate(ctx, req, nil); err != nil {
		return "", p.checked(ctx, err)
	}
	return p.who() + " answers (asked for one word; it has no list of models)", nil
}

// checked is failed, with words for the end of our patience.
func (p *provider) checked(ctx context.Context, err error) error {
	err = p.failed(ctx, err)
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Kind: ErrUnavailable, Retryable: true, Message: fmt.Sprintf("%s didn't answer within %s.", p.who(), checkTime)}
	}
	return err
}
