package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"approvalbot/internal/ledger"
	"approvalbot/internal/model"
)

// Sampling is the one thing in a run that is tried again: a model that failed has done nothing. Every failed attempt is
// journalled, so that people see why it takes longer, and what was streamed of it is void.
const (
	maxAttempts   = 5
	firstBackoff  = time.Second
	longestWait   = 30 * time.Second // between two attempts, where the provider doesn't say
	maxRetryAfter = 2 * time.Minute  // a provider that wants more gets its way, without us
	maxRetrying   = 5 * time.Minute  // from the first attempt to the last
)

// The codes of run_finished for what a model may fail with; another kind is MODEL_ERROR.
var modelCodes = map[model.ErrorKind]string{
	model.ErrKey:         "MODEL_KEY",
	model.ErrModel:       "MODEL_UNKNOWN",
	model.ErrContext:     "MODEL_CONTEXT",
	model.ErrRefused:     "MODEL_REFUSED",
	model.ErrRateLimit:   "MODEL_RATE_LIMITED",
	model.ErrQuota:       "MODEL_QUOTA",
	model.ErrOverloaded:  "MODEL_OVERLOADED",
	model.ErrUnavailable: "MODEL_UNAVAILABLE",
	model.ErrBroken:      "MODEL_BROKEN_ANSWER",
	model.ErrInvalid:     "MODEL_INVALID_REQUEST",
}

// A request is what a model is asked, and where that stands in the run.
type request struct {
	model.Request
	round   int
	from    int64              // Seq of the last event that it was built from
	summary *ledger.Compaction // it asks for the summary of this; nil: for an answer
}

// sampleError says that a model gave no answer, after all attempts.
type sampleError struct {
	kind   model.ErrorKind
	reason string // for people
}

func (e *sampleError) Error() string { return e.reason }

// end is how a run ends that got no answer.
func (e *sampleError) end() *ledger.RunFinished {
	return &ledger.RunFinished{Status: ledger.RunFailed, Code: firstOf(modelCodes[e.kind], codeModelError), Reason: e.reason}
}

// errInterrupted says that the run was ended from outside while the model was asked.
var errInterrupted = errors.New("the run was ended")

// sample asks the model for its next step and records its answer whole. It returns the run's end if there was none.
func (r *run) sample(ctx context.Context, round int) (*ledger.ModelCompleted, *ledger.RunFinished, error) {
	done, err := r.answer(ctx, round)
	var failed *sampleError
	switch {
	case err == nil:
		return done, nil, nil
	case errors.Is(err, errHalted):
		return nil, nil, err
	case ctx.Err() != nil:
		return nil, interrupted(ctx), nil
	case errors.As(err, &failed):
		return nil, failed.end(), nil
	}
	return nil, nil, halted(err)
}

// answer gets the next step, with the session compacted as far as that takes.
func (r *run) answer(ctx context.Context, round int) (*ledger.ModelCompleted, error) {
	alone := false // there is nothing but what was asked
	for p := whenLong; p < nothingLeft; p++ {
		t, err := r.transcript(ctx)
		if err != nil {
			return nil, err
		}
		alone = len(t.Request().Messages) == 1
		if !t.Complete() { // can't be: every call is ended before the next round
			return nil, halted(fmt.Errorf("the transcript of run %s has calls without a result", r.id))
		}
		shorter, err := r.compact(ctx, t, round, p)
		if err != nil {
			return nil, err
		}
		if !shorter && p != whenLong {
			continue // it was sent as it is before
		}
		if shorter {
			if t, err = r.transcript(ctx); err != nil {
				return nil, err
			}
		}
		resp, err := r.generate(ctx, request{Request: t.Request(), round: round, from: t.Last()})
		var failed *sampleError
		if errors.As(err, &failed) && failed.kind == model.ErrContext {
			continue
		}
		if err != nil {
			return nil, err
		}
		return r.completed(ctx, t, round, resp)
	}
	if alone {
		return nil, &sampleError{kind: model.ErrContext, reason: "This is too long for the model, together with what it is told of its tools. Write less at once. If it isn't long, whoever runs me has to choose a model that takes more, or offer fewer tools."}
	}
	return nil, &sampleError{kind: model.ErrContext, reason: "This conversation is too long for the model, and could not be shortened enough. Start a new thread, and say there what matters of this one."}
}

// completed records an answer.
func (r *run) completed(ctx context.Context, t *Transcript, round int, resp model.Response) (*ledger.ModelCompleted, error) {
	calls, err := r.identify(ctx, resp.ToolCalls)
	if err != nil {
		return nil, halted(err)
	}
	done := &ledger.ModelCompleted{
		Round: round, Text: resp.Text, ToolCalls: calls, Raw: resp.Raw, StopReason: resp.StopReason,
		Usage: r.usage(resp.Usage), SampledFrom: t.Last(), RequestHash: model.RequestHash(t.Request()),
	}
	return done, r.record(ctx, done)
}

// record journals what the model did. It can't be interrupted.
func (r *run) record(ctx context.Context, b ledger.Body) error {
	by := ledger.Actor{Kind: ledger.ActorModel, ID: r.profile.Model.Name()}
	_, err := r.Ledger.Append(context.WithoutCancel(ctx), ledger.Event{Session: r.session, Run: r.id, Actor: by, Body: b})
	return halted(err)
}

// usage is what a sample took, with what it cost where that is known.
func (a *Agent) usage(u model.Usage) ledger.Usage {
	if u == (model.Usage{}) {
		return ledger.Usage{} // nothing was counted, which isn't free
	}
	out := ledger.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
	}
	if micros, known := a.Price.Micros(u); known {
		out.Cost = &ledger.Cost{Micros: micros, Currency: "USD"}
	}
	return out
}

// compact shortens the session if it has to be, and tells whether it did. A summary that can't be had is no reason to end
// a run: then long outputs are cut.
func (r *run) compact(ctx context.Context, t *Transcript, round int, p pressure) (bool, error) {
	if p == outputsToo {
		return r.cutOutputs(ctx, t, t.Last(), ledger.Usage{})
	}
	c, ok := t.plan(r.ContextTokens, p)
	if !ok {
		return false, nil
	}
	resp, err := r.generate(ctx, request{Request: t.SummaryRequest(c), round: round, from: t.Last(), summary: &c})
	var failed *sampleError
	switch {
	case errors.As(err, &failed):
	case err != nil:
		return false, err
	case strings.TrimSpace(resp.Text) == "":
		failed = &sampleError{reason: "it was empty"}
	case resp.StopReason == model.StopMaxTokens:
		failed = &sampleError{reason: "it was cut off"}
	case !t.shorter(c, resp.Text, r.ContextTokens):
		failed = &sampleError{reason: "it was too long"}
	}
	if failed != nil {
		r.Logger.Warn("no summary of the session could be had; long outputs are cut instead",
			"session", r.session, "run", r.id, "kind", string(failed.kind), "why", failed.reason)
		return r.cutOutputs(ctx, t, c.Until, r.usage(resp.Usage))
	}
	return true, r.record(ctx, &ledger.SessionCompacted{
		Compaction: c, Method: ledger.CompactSummary, Text: summaryMessage(resp.Text, t.refusals(t.cut(c.Until))),
		Usage: r.usage(resp.Usage), SampledFrom: t.Last(), RequestHash: model.RequestHash(t.SummaryRequest(c)),
	})
}

// cutOutputs shortens what tools gave out. Nobody is asked for that; used is what a summary took that was of no use.
func (r *run) cutOutputs(ctx context.Context, t *Transcript, until int64, used ledger.Usage) (bool, error) {
	if !t.clippable(until, clipOutputs) {
		return false, nil
	}
	return true, r.record(ctx, &ledger.SessionCompacted{
		Compaction: ledger.Compaction{Until: until, Clip: clipOutputs}, Method: ledger.CompactOutputs, Usage: used, SampledFrom: t.Last(),
	})
}

// generate asks the model, again where that may help. The error is errInterrupted, errHalted or a [*sampleError].
func (r *run) generate(ctx context.Context, q request) (model.Response, error) {
	began, hash := time.Now(), model.RequestHash(q.Request)
	for attempt := 1; ; attempt++ {
		if ctx.Err() != nil {
			return model.Response{}, errInterrupted
		}
		resp, err := generate(ctx, r.profile.Model, q.Request, r.onDelta(q))
		if ctx.Err() != nil {
			return model.Response{}, errInterrupted
		}
		if err == nil {
			return resp, nil
		}
		failed, wait := judge(err, attempt, time.Since(began), rand.Float64())
		r.Logger.Warn("the model did not answer", "session", r.session, "run", r.id, "round", q.round,
			"attempt", attempt, "retry_in", wait, "error", err)
		if err := r.record(ctx, failed.event(q, hash, attempt, wait, err)); err != nil {
			return model.Response{}, err
		}
		if wait == 0 {
			return model.Response{}, failed
		}
		if !pause(ctx, wait) {
			return model.Response{}, errInterrupted
		}
	}
}

// generate samples a model and shields the process from what its client does wrong: a panic is a failed attempt.
func generate(ctx context.Context, m model.Model, q model.Request, onDelta func(string)) (resp model.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the model's client crashed: %v", p)
		}
	}()
	return m.Generate(ctx, q, onDelta)
}

// event is what the journal says of a failed attempt.
func (e *sampleError) event(q request, hash string, attempt int, wait time.Duration, err error) *ledger.ModelFailed {
	b := &ledger.ModelFailed{
		Round: q.round, Attempt: attempt, ErrorKind: string(e.kind), Message: e.reason, RetryIn: wait,
		SampledFrom: q.from, RequestHash: hash, Summary: q.summary,
	}
	if m, ok := errors.AsType[*model.Error](err); ok {
		b.RetryAfter = max(m.RetryAfter, 0)
	}
	return b
}

// judge says what a failure is to people, and how long to wait before the next attempt; 0: there is none. luck is between
// 0 and 1, so that those who were turned away together don't come back together.
func judge(err error, attempt int, spent time.Duration, luck float64) (*sampleError, time.Duration) {
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return &sampleError{reason: valid(err.Error())}, 0
	}
	failed := &sampleError{kind: e.Kind, reason: valid(e.Message)}
	if modelCodes[e.Kind] == "" {
		failed.reason = valid(e.Error()) // nobody thought of it, so all that is known is said
	}
	if !e.Retryable {
		return failed, 0
	}
	wait := backoff(attempt, luck)
	if e.RetryAfter > 0 {
		wait = max(wait, e.RetryAfter+time.Duration(luck*float64(e.RetryAfter)/10))
	}
	switch {
	case e.RetryAfter > maxRetryAfter:
		failed.reason = sentence(failed.reason) + fmt.Sprintf(" It wants to be left alone for %s, so it was not asked again; try then.", roughly(e.RetryAfter))
		return failed, 0
	case attempt >= maxAttempts, spent+wait > maxRetrying:
		if attempt > 1 {
			failed.reason = sentence(failed.reason) + fmt.Sprintf(" It was asked %d times.", attempt)
		}
		return failed, 0
	}
	return failed, wait
}

// roughly is a long wait in words, rounded up.
func roughly(d time.Duration) string {
	in, unit := time.Minute, "minutes"
	switch {
	case d > 48*time.Hour:
		in, unit = 24*time.Hour, "days"
	case d > 2*time.Hour:
		in, unit = time.Hour, "hours"
	}
	return fmt.Sprintf("%d %s", (d+in-1)/in, unit)
}

// backoff is the wait after an attempt: twice as long each time, half of it by chance.
func backoff(attempt int, luck float64) time.Duration {
	full := min(firstBackoff<<min(attempt-1, 10), longestWait)
	return full/2 + time.Duration(luck*float64(full/2))
}

// pause waits; false: ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// onDelta is who hears the model's text while it comes; nil: nobody does. A summary is for the model alone.
func (r *run) onDelta(q request) func(string) {
	if r.Deltas == nil || q.summary != nil {
		return nil
	}
	return func(text string) { r.Deltas(r.id, text) }
}
