package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The exit codes of ask. Everything but 0 means: don't.
const (
	exitDenied     = 1 // somebody, or the policy, said no
	exitUnanswered = 2 // nobody answered, nobody could be asked, or the answer didn't get here
	exitNotAsked   = 3 // the request is wrong, or approvalbot isn't there
)

// remote is how a command reaches a bot that runs elsewhere.
type remote struct {
	URL string `name:"url" placeholder:"URL" help:"Where the bot's HTTP API is (default: http:// and APPROVALBOT_API_ADDR). The token comes from APPROVALBOT_API_TOKEN."`

	transport http.RoundTripper // nil: the default
}

type askCmd struct {
	remote         `embed:""`
	Tool           string        `required:"" help:"What will be done, in a word: deploy, drop_table (letters, digits, _ and -)."`
	Args           string        `default:"{}" placeholder:"JSON" help:"Exactly what will be done: a JSON object. It stands on the card."`
	Reason         string        `help:"Why, in a sentence."`
	Cwd            string        `help:"The directory in which it will be done."`
	Slack          string        `placeholder:"CHANNEL" help:"Ask in this channel (C…), which has to be listed in APPROVALBOT_CHANNELS. Without it programs with the scope decide are asked."`
	Thread         string        `placeholder:"TS" help:"… and in this thread of it."`
	Timeout        time.Duration `help:"How long people have to answer (default: the bot's setting)."`
	IdempotencyKey string        `placeholder:"KEY" help:"The same key is the same request: a job that is started again gets the answer that it got before."`
}

// Help says what scripts rely on.
func (askCmd) Help() string {
	return "Exit codes: 0 approved, do it now; 1 denied; 2 not answered; 3 could not ask. Prints the approval's id, for `approvalbot outcome ID`."
}

func (c askCmd) Run(ctx context.Context) error {
	id, err := c.ask(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if _, err := fmt.Println(id); err != nil {
		return &exitError{exitUnanswered, "the approval's id could not be printed"}
	}
	return nil
}

// An approvalAnswer is what the API says of an ask, as far as the commands read it.
type approvalAnswer struct {
	OK       bool   `json:"ok"`
	Error    string `json:"error"`
	Approval *struct {
		ID         string `json:"id"`
		Status     string `json:"status"`
		Resolution *struct {
			Source string                     `json:"source"`
			Reason string                     `json:"reason"`
			By     *struct{ Name, ID string } `json:"by"`
		} `json:"resolution"`
	} `json:"approval"`
	ValidationErrors struct {
		FormErrors  []string            `json:"formErrors"`
		FieldErrors map[string][]string `json:"fieldErrors"`
	} `json:"validationErrors"`
}

// refusal is why a request was refused, with what is wrong with it.
func (a *approvalAnswer) refusal() string {
	all := append([]string{a.Error}, a.ValidationErrors.FormErrors...)
	for name, errs := range a.ValidationErrors.FieldErrors {
		all = append(all, name+": "+strings.Join(errs, ", "))
	}
	return strings.Join(all, "; ")
}

// ask asks and waits. No error means approved.
func (c askCmd) ask(ctx context.Context, log io.Writer) (id string, err error) {
	body, err := c.body()
	if err != nil {
		return "", &exitError{exitNotAsked, err.Error()}
	}
	a, err := c.open(ctx, body)
	if err != nil {
		return "", &exitError{exitNotAsked, "could not ask: " + err.Error()}
	}
	id = a.Approval.ID
	fmt.Fprintf(log, "asked (%s), waiting for the answer\n", id)
	for lost := 0; a.Approval.Status == "pending"; {
		next, err := c.call(ctx, http.MethodGet, "/api/approvals/"+url.PathEscape(id)+"?wait=30s", nil)
		if err == nil && next.Approval != nil {
			a, lost = next, 0
			continue
		}
		if lost++; ctx.Err() != nil || lost > maxLost {
			c.withdraw(ctx, id)
			return "", &exitError{exitUnanswered, fmt.Sprintf("no answer to %s came: %v", id, err)}
		}
		pause(ctx, time.Duration(lost)*time.Second)
	}
	return id, a.verdict(log)
}

// maxLost is how many failures in a row end the waiting for an answer: a restart of the bot is over by then, and it has
// said no by then.
const maxLost = 8

// verdict is what a script is told of an ask that is over.
func (a *approvalAnswer) verdict(log io.Writer) error {
	who, why, source := "", "", ""
	if r := a.Approval.Resolution; r != nil {
		why, source = r.Reason, r.Source
		if r.By != nil {
			who = firstNonEmpty(r.By.Name, r.By.ID)
		}
	}
	switch a.Approval.Status {
	case "approved":
		fmt.Fprintf(log, "approved by %s\n", firstNonEmpty(who, "the policy"))
		return nil
	case "denied":
		code, what := exitUnanswered, "not approved"
		if source == "user" || source == "policy" {
			code, what = exitDenied, "denied by "+firstNonEmpty(who, "the policy")
		}
		if why != "" {
			what += ": " + why
		}
		return &exitError{code, what}
	case "done", "failed", "no_outcome":
		return &exitError{exitNotAsked, "this was approved before, and is over (" + a.Approval.Status + "); ask again with another idempotency key"}
	}
	return &exitError{exitUnanswered, "the answer can't be read"}
}

func (c askCmd) body() ([]byte, error) {
	args := json.RawMessage(c.Args)
	if !json.Valid(args) {
		return nil, errors.New("--args has to be a JSON object")
	}
	// The arguments go through as they are: what is wrong with them is for the other side to say.
	body := map[string]any{"tool": c.Tool, "arguments": args}
	for name, v := range map[string]string{"reason": c.Reason, "cwd": c.Cwd, "idempotencyKey": firstNonEmpty(c.IdempotencyKey, uuid.NewString())} {
		if v != "" {
			body[name] = v
		}
	}
	if c.Timeout != 0 {
		body["timeout"] = c.Timeout.String()
	}
	if c.Slack != "" {
		place := map[string]string{"channel": c.Slack}
		if c.Thread != "" {
			place["thread_ts"] = c.Thread
		}
		body["slack"] = place
	} else if c.Thread != "" {
		return nil, errors.New("--thread needs --slack")
	}
	return encodeJSON(body)
}

// encodeJSON writes JSON without touching what stands in strings.
func encodeJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return out.Bytes(), err
}

// open sends the request; it has a key, so it can be sent again when the answer was lost.
func (c askCmd) open(ctx context.Context, body []byte) (*approvalAnswer, error) {
	for try := 1; ; try++ {
		a, err := c.call(ctx, http.MethodPost, "/api/approvals", body)
		if err == nil && a.Approval == nil {
			err = errors.New("the answer can't be read")
		}
		var refused *refusedError
		if err == nil || errors.As(err, &refused) || try == 3 || ctx.Err() != nil {
			return a, err
		}
		pause(ctx, time.Duration(try)*time.Second)
	}
}

// withdraw ends an ask that nobody waits for any more: nobody should approve what won't be done.
func (c askCmd) withdraw(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, _ = c.call(ctx, http.MethodPost, "/api/agent/runs/"+url.PathEscape(id)+"/stop", nil) // if it can't be, its time ends it
}

// A refusedError is an answer that says no to the request itself: sending it again changes nothing.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

// call sends one request.
func (r remote) call(ctx context.Context, method, path string, body []byte) (*approvalAnswer, error) {
	token, base, err := r.where()
	if err != nil {
		return nil, &refusedError{err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, &refusedError{"--url: " + err.Error()}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: r.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var a approvalAnswer
	err = json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&a)
	switch {
	case resp.StatusCode == http.StatusOK && err == nil && a.OK:
		return &a, nil
	case resp.StatusCode >= http.StatusInternalServerError:
		return nil, fmt.Errorf("%s: %s", resp.Status, a.refusal())
	case err != nil:
		return nil, &refusedError{fmt.Sprintf("%s answered %s, which is not approvalbot's API", base, resp.Status)}
	}
	return nil, &refusedError{a.refusal()}
}

// where finds the token and the address.
func (r remote) where() (token, base string, err error) {
	token = os.Getenv("APPROVALBOT_API_TOKEN")
	if token == "" {
		return "", "", errors.New("APPROVALBOT_API_TOKEN is not set: it is the token (scope run) that the bot knows this program by")
	}
	base = r.URL
	if base == "" {
		if base, err = baseOf(firstNonEmpty(os.Getenv("APPROVALBOT_API_ADDR"), "127.0.0.1:3102")); err != nil {
			return "", "", err
		}
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", "", fmt.Errorf("--url %s: it has to be http://HOST:PORT or https://HOST", base)
	}
	return token, strings.TrimRight(base, "/"), nil
}

// baseOf is how a bot that listens on an address is reached from the same machine.
func baseOf(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("APPROVALBOT_API_ADDR=%s: it has to be HOST:PORT", addr)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

func firstNonEmpty(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

type outcomeCmd struct {
	remote `embed:""`
	ID     string `arg:"" help:"What approvalbot ask printed."`
	Failed bool   `help:"It failed. Without it: it was done."`
	Output string `help:"What people should see of it."`
}

func (c outcomeCmd) Run(ctx context.Context) error {
	body, err := encodeJSON(map[string]any{"ok": !c.Failed, "output": c.Output})
	if err != nil {
		return err
	}
	if _, err := c.call(ctx, http.MethodPost, "/api/approvals/"+url.PathEscape(c.ID)+"/outcome", body); err != nil {
		return fmt.Errorf("the outcome could not be reported: %w", err)
	}
	return nil
}
