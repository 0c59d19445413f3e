// Package metrics counts what approvalbot does, for Prometheus.
//
// # Two sources
//
// What people and agents do is counted from the journal: [Metrics.Observe] reads one event after the other and nothing
// else, so the figures can't say anything that the record doesn't. One follower of the journal feeds it. It begins where
// the journal ended when the process started, so counters start at zero and history is not counted again; what recovery
// ends at the start is new, and counts.
//
// What the process does besides is told through small hooks: every commit of the journal ([Metrics.Committed]), every
// call of Slack's Web API and every connection ([Metrics.Called], [Metrics.Connected], [Metrics.Disconnected]). What
// stands at one moment is asked for when Prometheus asks ([Sources]).
//
// # Labels
//
// No label grows with use. There is none for sessions, runs, people, channels or arguments: those are in the journal and
// in the log. Tools are those that the agent offers, a name that a model made up counts as "other"; Slack's error codes
// count by name up to a limit, then as "other". Labels of our own vocabulary pass the same bound, so that a journal
// written by a newer version can't break it.
package metrics

import (
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const namespace = "approvalbot"

// Metrics are the counters of one process.
type Metrics struct {
	registry *prometheus.Registry
	began    atomic.Bool // Slack has said hello before
	sources  atomic.Pointer[Sources]
	tools    atomic.Pointer[map[string]bool]

	journal journal
	slack   slack
	folding folding // used by Observe only
}

// Sources answer what stands at the moment. Each may be nil.
type Sources struct {
	Tools    []string                            // the tools that the agent offers; others count as "other"
	Families []string                            // what names of tools begin with that come and go: each family counts as one
	Checks   []Check                             // as in /readyz
	Waiting  func() (open int, oldest time.Time) // asks that wait for people
	Paused   func() bool                         // nothing new starts
	Backlog  func() map[string]int               // messages that Slack doesn't show as wanted yet, by kind
}

// A Check is one thing that has to be well: nil, or why it isn't.
type Check struct {
	Name string
	Err  func() error
}

// New makes counters that stand at zero.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), folding: newFolding()}
	m.sources.Store(&Sources{})
	m.tools.Store(&map[string]bool{})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.journal, m.slack = newJournal(), newSlack()
	m.registry.MustRegister(build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &moment{m})
	m.registry.MustRegister(m.journal.all()...)
	m.registry.MustRegister(m.slack.all()...)
	return m
}

// Watch names the sources. It is called once, when the process is wired.
func (m *Metrics) Watch(s Sources) {
	known := map[string]bool{}
	for _, t := range s.Tools {
		known[t] = true
	}
	m.tools.Store(&known)
	m.sources.Store(&s)
}

// Tool is what a tool counts as: its name, if it is one that the agent always offers, or its family; a model may make up
// any name.
func (m *Metrics) Tool(name string) string {
	if (*m.tools.Load())[name] {
		return name
	}
	if s := m.sources.Load(); s != nil {
		for _, f := range s.Families {
			if strings.HasPrefix(name, f) {
				return f + "*"
			}
		}
	}
	return other
}

// Handler answers Prometheus. Who may ask is the HTTP API's question.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError, // one figure less is better than none
	})
}

// moment collects what stands at the moment of a scrape.
type moment struct{ m *Metrics }

var (
	readyDesc = prometheus.NewDesc("approvalbot_ready", "1 while this is well, as in /readyz.", []string{"check"}, nil)
	openDesc  = prometheus.NewDesc("approvalbot_asks_pending", "Asks that wait for people now.", nil, nil)
	ageDesc   = prometheus.NewDesc("approvalbot_asks_oldest_pending_seconds", "How long the oldest pending ask has waited; 0 without one.", nil, nil)
	pauseDesc = prometheus.NewDesc("approvalbot_paused", "1 while operators have paused it: nothing starts and nothing can be approved.", nil, nil)
	queueDesc = prometheus.NewDesc("approvalbot_slack_outbox_messages", "Messages of ours that don't stand in Slack as wanted yet.", []string{"kind"}, nil)
)

func (c *moment) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{readyDesc, openDesc, ageDesc, pauseDesc, queueDesc} {
		ch <- d
	}
}

func (c *moment) Collect(ch chan<- prometheus.Metric) {
	s := c.m.sources.Load()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, check := range s.Checks {
		well := 1.0
		if check.Err() != nil {
			well = 0
		}
		gauge(readyDesc, well, check.Name)
	}
	if s.Waiting != nil {
		open, oldest := s.Waiting()
		age := 0.0
		if open > 0 {
			age = max(time.Since(oldest).Seconds(), 0)
		}
		gauge(openDesc, float64(open))
		gauge(ageDesc, age)
	}
	if s.Paused != nil {
		paused := 0.0
		if s.Paused() {
			paused = 1
		}
		gauge(pauseDesc, paused)
	}
	if s.Backlog != nil {
		for kind, n := range s.Backlog() {
			gauge(queueDesc, float64(n), kind)
		}
	}
}
