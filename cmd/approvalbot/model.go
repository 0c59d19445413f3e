package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"approvalbot/internal/model"
)

// modelOptions are what the models of providers get from the settings. client sends their requests; nil: their own.
func (s *Settings) modelOptions(client *http.Client) model.Options {
	return model.Options{
		AnthropicKey: s.AnthropicKey, AnthropicBaseURL: s.AnthropicBaseURL,
		OpenAIKey: s.OpenAIKey, OpenAIBaseURL: s.OpenAIBaseURL,
		MaxTokens: s.MaxOutputTokens, HTTPClient: client,
	}
}

// checkModel names what is wrong with the settings of models, whichever model is chosen.
func (s *Settings) checkModel() (wrong []error) {
	for _, u := range []struct{ name, value string }{{"ANTHROPIC_BASE_URL", s.AnthropicBaseURL}, {"OPENAI_BASE_URL", s.OpenAIBaseURL}} {
		if err := model.CheckBaseURL(u.value); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", u.name, err))
		}
	}
	if s.MaxOutputTokens < 0 || s.MaxOutputTokens > 1_000_000 {
		wrong = append(wrong, fmt.Errorf("APPROVALBOT_MAX_OUTPUT_TOKENS=%d: it has to be between 1 and 1000000, or 0 for the usual limit", s.MaxOutputTokens))
	}
	return wrong
}

// unusedKeys says which keys of providers are there while the demo answers: somebody may think that a real model does.
func (s *Settings) unusedKeys() string {
	if s.Model != "demo" {
		return ""
	}
	var found, models []string
	for _, k := range []struct{ setting, value, model string }{
		{"ANTHROPIC_API_KEY", s.AnthropicKey, "anthropic/NAME"}, {"OPENAI_API_KEY", s.OpenAIKey, "openai/NAME"},
	} {
		if k.value != "" {
			found, models = append(found, k.setting), append(models, "--model "+k.model)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("%s found in the environment and not used: the demo answers. For a real model: %s (make dev MODEL=…)",
		strings.Join(found, " and "), strings.Join(models, " or "))
}

// model asks the model's provider; a name that can be opened doesn't say that the key is good.
func (d *diagnosis) model(ctx context.Context, s Settings) {
	if s.Model == "" {
		return // named among the settings
	}
	m, err := model.Open(s.Model, s.modelOptions(nil))
	how := ""
	if err == nil {
		how, err = model.Check(ctx, m)
	}
	d.check("model", fmt.Sprintf("%s (from APPROVALBOT_MODEL): %s", s.Model, how), err)
}
