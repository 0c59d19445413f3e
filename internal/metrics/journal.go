package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"approvalbot/internal/ledger"
)

// Buckets, in seconds. People decide in seconds to a day; two seconds is where an approval is too quick to have been read.
var (
	peopleBuckets = []float64{0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600, 4 * 3600, 24 * 3600}
	workBuckets   = []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600}
	showBuckets   = []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60}
	commitBuckets = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5}
)

// journal are the figures that come from the journal: its events and its commits.
type journal struct {
	events, messages, rounds, tokens *prometheus.CounterVec
	failed, compacted, cost          *prometheus.CounterVec
	runs                             *prometheus.CounterVec
	active                           *prometheus.GaugeVec
	runTime                          *prometheus.HistogramVec
	decisions, asked, asks, grants   *prometheus.CounterVec
	decided                          *prometheus.HistogramVec
	shown                            prometheus.Histogram
	calls                            *prometheus.CounterVec
	unknown                          prometheus.Counter
	callTime                         *prometheus.HistogramVec
	settled                          *prometheus.CounterVec

	commits prometheus.Histogram
	appends *prometheus.CounterVec
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

func newJournal() journal {
	j := journal{
		events:    counter("journal_events_total", "Events of the journal.", "kind"),
		messages:  counter("messages_received_total", "Messages of people and programs, by where they came from and what they do.", "origin", "disposition"),
		rounds:    counter("model_samples_total", "Answers of the model.", "stop_reason"),
		tokens:    counter("model_tokens_total", "Tokens of the model.", "direction"),
		failed:    counter("model_failures_total", "Attempts to sample the model that failed, by kind of error.", "kind"),
		compacted: counter("session_compactions_total", "Sessions that were shortened for the model.", "method"),
		cost:      counter("model_cost_total", "What the model cost, in units of the currency, where a price is set.", "currency"),
		runs:      counter("runs_total", "Runs that ended. The code is empty for a success.", "status", "code"),
		active: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "runs_active",
			Help: "Runs that have not ended."}, []string{"status"}),
		runTime:   histogram("run_duration_seconds", "From a run's start to its end, waiting for people included.", peopleBuckets, "status"),
		decisions: counter("permission_decisions_total", "What the policy said of tool calls.", "tool", "decision"),
		grants:    counter("grants_total", "What became of calls that people allow in advance: given, used, revoked.", "event"),
		asked:     counter("asks_opened_total", "Asks that were opened.", "tool"),
		asks:      counter("asks_total", "Asks that ended, by outcome and by what ended them.", "outcome", "source"),
		decided:   histogram("ask_decision_seconds", "How long people took to decide, from when the ask was shown to them.", peopleBuckets, "outcome"),
		shown: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "ask_show_seconds",
			Help: "From opening an ask to its first showing.", Buckets: showBuckets}),
		calls: counter("tool_calls_total", "Tool calls that ended, by state, and by source where they were denied.", "tool", "state", "source"),
		unknown: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "tool_calls_outcome_unknown_total",
			Help: "Tool calls that were running when approvalbot ended: whether they were performed is not known."}),
		callTime: histogram("tool_call_duration_seconds", "How long tools ran, waiting for people not included.", workBuckets, "tool", "state"),
		settled:  counter("slack_messages_settled_total", "Messages of ours in Slack that came to their end, or are gone.", "kind", "result"),
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "journal_commit_seconds",
			Help: "One durable commit of the journal.", Buckets: commitBuckets}),
		appends: counter("journal_appends_total", "Appends to the journal.", "result"),
	}
	j.zero()
	return j
}

// zero makes the series that alerts compute with, so that their first increase can be seen.
func (j journal) zero() {
	for _, s := range []ledger.RunStatus{ledger.RunRunning, ledger.RunWaiting} {
		j.active.WithLabelValues(string(s))
	}
	for _, s := range []ledger.Source{ledger.SourceUser, ledger.SourceTimeout, ledger.SourceAbort, ledger.SourceUndeliverable} {
		j.asks.WithLabelValues(string(ledger.Denied), string(s))
	}
	j.asks.WithLabelValues(string(ledger.Approved), string(ledger.SourceUser))
	for _, o := range []ledger.ResolutionType{ledger.Approved, ledger.Denied} {
		j.decided.WithLabelValues(string(o))
	}
	for _, r := range []string{"recorded", "conflict", "failed"} {
		j.appends.WithLabelValues(r)
	}
}

func (j journal) all() []prometheus.Collector {
	return []prometheus.Collector{
		j.events, j.messages, j.rounds, j.tokens, j.failed, j.compacted, j.cost, j.runs, j.active, j.runTime, j.decisions, j.grants, j.asked, j.asks, j.decided,
		j.shown, j.calls, j.unknown, j.callTime, j.settled, j.commits, j.appends,
	}
}

// folding is what Observe remembers: of each run and each ask that is open, when it began.
type folding struct {
	runs map[string]*openRun
	asks map[string]*openAsk // by approvalId

	kinds, origins, dispositions, stops, statuses, codes, things, gone, states, sources, decisions, outcomes *words
	failures, methods, currencies                                                                            *words
}

type openRun struct {
	at   time.Time
	asks int // that are open
}

type openAsk struct {
	run       string
	at, shown time.Time
	timeout   time.Duration
}

func newFolding() folding {
	return folding{
		runs: map[string]*openRun{}, asks: map[string]*openAsk{},
		kinds: newWords(), origins: newWords(), dispositions: newWords(), stops: newWords(), statuses: newWords(),
		codes: newWords(), things: newWords(), gone: newWords(), states: newWords(), sources: newWords(),
		decisions: newWords(), outcomes: newWords(), failures: newWords(), methods: newWords(), currencies: newWords(),
	}
}

// Observe reads the next event of the journal. It looks at nothing else, not at the clock either. One goroutine calls it.
func (m *Metrics) Observe(e ledger.Event) {
	j, f := &m.journal, &m.folding
	j.events.WithLabelValues(f.kinds.label(e.Kind())).Inc()
	switch b := e.Body.(type) {
	case *ledger.MessageReceived:
		j.messages.WithLabelValues(f.origins.label(b.Origin.Kind), f.dispositions.label(string(b.Disposition))).Inc()
	case *ledger.RunStarted:
		m.runStarted(e)
	case *ledger.RunFinished:
		m.runFinished(e, b)
	case *ledger.ModelCompleted:
		j.rounds.WithLabelValues(f.stops.optional(b.StopReason)).Inc()
		m.used(b.Usage)
	case *ledger.ModelFailed:
		j.failed.WithLabelValues(f.failures.label(b.ErrorKind)).Inc()
	case *ledger.SessionCompacted:
		j.compacted.WithLabelValues(f.methods.label(string(b.Method))).Inc()
		m.used(b.Usage)
	case *ledger.PermissionDecided:
		j.decisions.WithLabelValues(m.Tool(b.Tool), f.decisions.label(string(b.Type))).Inc()
		if b.Grant != "" {
			j.grants.WithLabelValues("used").Inc()
		}
	case *ledger.GrantGiven:
		j.grants.WithLabelValues("given").Inc()
	case *ledger.GrantRevoked:
		j.grants.WithLabelValues("revoked").Inc()
	case *ledger.ApprovalRequested:
		m.asked(e, b)
	case *ledger.ApprovalShown:
		m.shown(e, b)
	case *ledger.ApprovalResolved:
		m.resolved(e, b)
	case *ledger.ToolFinished:
		m.toolFinished(b)
	case *ledger.MessageSettled:
		result := "confirmed"
		if b.Gone != "" {
			result = f.gone.label(b.Gone)
		}
		j.settled.WithLabelValues(f.things.label(b.Thing.Kind), result).Inc()
	}
}

// used counts what one sample took.
func (m *Metrics) used(u ledger.Usage) {
	j := &m.journal
	j.tokens.WithLabelValues("input").Add(float64(max(u.InputTokens, 0)))
	j.tokens.WithLabelValues("output").Add(float64(max(u.OutputTokens, 0)))
	if c := u.Cost; c != nil {
		j.cost.WithLabelValues(m.folding.currencies.label(c.Currency)).Add(float64(max(c.Micros, 0)) / 1e6)
	}
}

func (m *Metrics) runStarted(e ledger.Event) {
	if m.folding.runs[e.Run] == nil {
		m.folding.runs[e.Run] = &openRun{at: e.Time}
		m.journal.active.WithLabelValues(string(ledger.RunRunning)).Inc()
	}
}

func (m *Metrics) runFinished(e ledger.Event, b *ledger.RunFinished) {
	f := &m.folding
	status := f.statuses.label(string(b.Status))
	m.journal.runs.WithLabelValues(status, f.codes.optional(b.Code)).Inc()
	r := f.runs[e.Run]
	if r == nil { // begun before this process
		return
	}
	delete(f.runs, e.Run)
	m.journal.active.WithLabelValues(string(r.status())).Dec()
	m.journal.runTime.WithLabelValues(status).Observe(e.Time.Sub(r.at).Seconds())
}

func (r *openRun) status() ledger.RunStatus {
	if r.asks > 0 {
		return ledger.RunWaiting
	}
	return ledger.RunRunning
}

// wait counts an ask of a run in or out.
func (m *Metrics) wait(run string, by int) {
	r := m.folding.runs[run]
	if r == nil {
		return
	}
	was := r.status()
	r.asks += by
	if is := r.status(); is != was {
		m.journal.active.WithLabelValues(string(was)).Dec()
		m.journal.active.WithLabelValues(string(is)).Inc()
	}
}

func (m *Metrics) asked(e ledger.Event, b *ledger.ApprovalRequested) {
	m.journal.asked.WithLabelValues(m.Tool(b.Tool)).Inc()
	if m.folding.asks[b.Approval] == nil {
		m.folding.asks[b.Approval] = &openAsk{run: e.Run, at: e.Time, timeout: b.Timeout}
		m.wait(e.Run, 1)
	}
}

// shown notes since when people see an ask. The deadline that stands there is the timeout after it was sent, so it says
// when that was, also where the answer to the post was lost and the showing is recorded with the click.
func (m *Metrics) shown(e ledger.Event, b *ledger.ApprovalShown) {
	a := m.folding.asks[b.Approval]
	if a == nil || !a.shown.IsZero() {
		return
	}
	a.shown = e.Time
	if sent := b.Until.Add(-a.timeout); sent.After(a.at) && sent.Before(e.Time) {
		a.shown = sent
	}
	m.journal.shown.Observe(a.shown.Sub(a.at).Seconds())
}

func (m *Metrics) resolved(e ledger.Event, b *ledger.ApprovalResolved) {
	f := &m.folding
	outcome := f.outcomes.label(string(b.Type))
	m.journal.asks.WithLabelValues(outcome, f.sources.label(string(b.Source))).Inc()
	a := f.asks[b.Approval]
	if a == nil { // opened before this process
		return
	}
	delete(f.asks, b.Approval)
	m.wait(a.run, -1)
	if b.Source != ledger.SourceUser {
		return
	}
	since := a.shown
	if since.IsZero() {
		since = a.at
	}
	m.journal.decided.WithLabelValues(outcome).Observe(e.Time.Sub(since).Seconds())
}

func (m *Metrics) toolFinished(b *ledger.ToolFinished) {
	f := &m.folding
	tool, state := m.Tool(b.Tool), f.states.label(string(b.State))
	m.journal.calls.WithLabelValues(tool, state, f.sources.optional(string(b.Source))).Inc()
	if b.Code == "OUTCOME_UNKNOWN" {
		m.journal.unknown.Inc()
	}
	if b.State != ledger.OutputDenied && b.Elapsed > 0 {
		m.journal.callTime.WithLabelValues(tool, state).Observe(b.Elapsed.Seconds())
	}
}

// Committed counts one transaction of the journal.
func (m *Metrics) Committed(c ledger.Commit) {
	j := &m.journal
	if c.Err == nil {
		j.commits.Observe(c.Took.Seconds())
	}
	j.appends.WithLabelValues("recorded").Add(float64(c.Recorded))
	j.appends.WithLabelValues("conflict").Add(float64(c.Conflicts))
	j.appends.WithLabelValues("failed").Add(float64(c.Failed))
}
