package model

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"approvalbot/internal/spelling"
)

// Options are what the models of providers need besides their name. The
// environment is never asked: what isn't here doesn't count.
type Options struct {
	AnthropicKey     string
	AnthropicBaseURL string // empty: Anthropic's own
	OpenAIKey        string
	OpenAIBaseURL    string // empty: OpenAI's own; any server that speaks its Chat Completions API

	// MaxTokens is the most that one answer may have. 0: the provider's limit
	// where it has one of its own, else [DefaultMaxTokens].
	MaxTokens int

	// Idle is how long a provider may send nothing; twice as long where the answer
	// comes in one piece. 0: [DefaultIdle].
	Idle time.Duration

	// HTTPClient sends the requests; nil: one that follows no redirect and knows
	// no proxy. Redirects are refused whichever it is: they would carry the key
	// and the conversation to an address that nobody chose.
	HTTPClient *http.Client
}

// stall is how long an answer may not go on although its connection lives: a model
// that thinks for long is kept alive by pings.
func (o Options) stall() time.Duration { return 4 * cmp.Or(max(o.Idle, 0), DefaultIdle) }

const (
	// DefaultMaxTokens is sent where a provider wants a limit and none is set: an
	// answer with a large file in it fits, one that never ends is stopped.
	DefaultMaxTokens = 16_000

	// DefaultIdle is far more than a provider needs to begin or to go on, and
	// short enough that a dead connection doesn't hold a run for the day.
	DefaultIdle = 5 * time.Minute
)

// Names says which models there are, for texts of help and of errors.
const Names = "anthropic/NAME, openai/NAME (also every compatible server, by OPENAI_BASE_URL), demo, or script:FILE"

// Open returns the model of that name: "anthropic/NAME", "openai/NAME", "demo",
// or "script:FILE".
func Open(name string, o Options) (Model, error) {
	if name == "demo" {
		return Demo{}, nil
	}
	if file, ok := strings.CutPrefix(name, "script:"); ok {
		return OpenScript(file)
	}
	if name == "" {
		return nil, fmt.Errorf("no model is named; use %s", Names)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, fmt.Errorf("model %q: a name has no spaces and no line breaks", name)
	}
	if o.MaxTokens < 0 {
		return nil, fmt.Errorf("model %s: the limit of an answer can't be negative", name)
	}
	switch provider, rest, _ := strings.Cut(name, "/"); {
	case provider == "anthropic" && rest != "":
		return openAnthropic(rest, o)
	case provider == "openai" && rest != "":
		return openOpenAI(rest, o)
	case provider == "anthropic", provider == "openai":
		return nil, fmt.Errorf("model %q: the provider's name for the model is missing: %s/NAME", name, provider)
	}
	return nil, fmt.Errorf("unknown model %q; use %s.%s", name, Names, meantModel(name))
}

// meantModel is a question to go behind the news that there is no such model.
func meantModel(name string) string {
	provider, rest, named := strings.Cut(name, "/")
	lower := strings.ToLower(name)
	switch {
	case named && rest != "":
		if right, apart := spelling.Closest(provider, []string{"anthropic", "openai"}); apart <= 2 {
			return fmt.Sprintf(" Did you mean %s/%s?", right, rest)
		}
	case strings.HasPrefix(lower, "claude"):
		return fmt.Sprintf(" Did you mean anthropic/%s?", name)
	case strings.HasPrefix(lower, "gpt"):
		return fmt.Sprintf(" Did you mean openai/%s?", name)
	case strings.HasPrefix(lower, "script"), strings.HasSuffix(lower, ".json"):
		return " Did you mean script:FILE?"
	}
	return spelling.DidYouMean(name, []string{"demo"})
}

// lastUser returns the index of the last message that a person wrote, or -1.
// Where a conversation has several runs, this one began there.
func lastUser(messages []Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == RoleUser {
			return i
		}
	}
	return -1
}

// lastResults returns the results at the end of the conversation, whether they
// came in one message or in several.
func lastResults(messages []Message) []ToolResult {
	first := len(messages)
	for first > 0 && messages[first-1].Role == RoleTool {
		first--
	}
	var results []ToolResult
	for _, m := range messages[first:] {
		results = append(results, m.Results...)
	}
	return results
}

// emit streams a text in the given pieces.
func emit(onDelta func(string), pieces []string) {
	if onDelta == nil {
		return
	}
	for _, p := range pieces {
		if p != "" {
			onDelta(p)
		}
	}
}
