package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var callBuckets = []float64{0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// slack are the figures of the connection to Slack. It tells them to [Metrics] through an interface of its own.
type slack struct {
	calls       *prometheus.CounterVec
	callTime    *prometheus.HistogramVec
	reconnects  prometheus.Counter
	disconnects *prometheus.CounterVec

	methods, results, reasons *words
}

func newSlack() slack {
	return slack{
		calls:    counter("slack_calls_total", "Calls of Slack's Web API: ok, ratelimited, Slack's error code, http_STATUS, or no_answer.", "method", "result"),
		callTime: histogram("slack_call_seconds", "How long calls of Slack's Web API took.", callBuckets, "method"),
		reconnects: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "slack_reconnects_total",
			Help: "Socket Mode connections after the first one."}),
		disconnects: counter("slack_disconnects_total", "Socket Mode connections that ended, by the reason that Slack gave; lost: none.", "reason"),
		methods:     newWords(),
		results:     newWords("ok", "ratelimited", "no_answer", "cancelled", "unreadable"),
		reasons:     newWords("lost"),
	}
}

func (s slack) all() []prometheus.Collector {
	return []prometheus.Collector{s.calls, s.callTime, s.reconnects, s.disconnects}
}

// Called counts one call of the Web API.
func (m *Metrics) Called(method, result string, took time.Duration) {
	method = m.slack.methods.label(method)
	m.slack.calls.WithLabelValues(method, m.slack.results.label(result)).Inc()
	m.slack.callTime.WithLabelValues(method).Observe(took.Seconds())
}

// Connected counts a connection that stands.
func (m *Metrics) Connected() {
	if m.began.Swap(true) {
		m.slack.reconnects.Inc()
	}
}

// Disconnected counts a connection that ended by itself.
func (m *Metrics) Disconnected(reason string) {
	m.slack.disconnects.WithLabelValues(m.slack.reasons.label(reason)).Inc()
}
