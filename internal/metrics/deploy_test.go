package metrics

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"approvalbot/internal/ledger"
)

// lived are the metrics of a process in which everything has happened that a query asks for.
func lived(t testing.TB) *Metrics {
	t.Helper()
	m := New("test")
	m.Watch(Sources{
		Tools:   []string{"shell"},
		Checks:  []Check{{"journal", func() error { return nil }}, {"slack", func() error { return nil }}, {"model", func() error { return errors.New("none") }}},
		Waiting: func() (int, time.Time) { return 1, time.Now() },
		Backlog: func() map[string]int { return map[string]int{"card": 1} },
	})
	observe(m,
		at(0, &ledger.MessageReceived{Origin: ledger.Origin{Kind: "slack"}, Disposition: ledger.Starts}),
		at(0, &ledger.RunStarted{}), at(0, &ledger.ModelFailed{ErrorKind: "overloaded"}),
		at(1, &ledger.ModelCompleted{StopReason: "tool_use", Usage: ledger.Usage{InputTokens: 1, Cost: &ledger.Cost{Micros: 1, Currency: "USD"}}}),
		at(1, &ledger.SessionCompacted{Method: ledger.CompactSummary}),
		at(1, &ledger.PermissionDecided{Tool: "shell", Type: ledger.Ask}),
		at(1, requested("a")), shown("a", 2), at(20, resolved("a", ledger.Approved, ledger.SourceUser)),
		at(21, &ledger.ToolFinished{Tool: "shell", State: ledger.OutputAvailable, Elapsed: time.Second}),
		at(22, &ledger.RunFinished{Status: ledger.RunFailed, Code: "MODEL_ERROR"}),
		at(22, &ledger.MessageSettled{Thing: ledger.Thing{Kind: "card"}}),
	)
	for _, result := range []string{"ok", "ratelimited", "no_answer"} {
		m.Called("chat.update", result, time.Millisecond)
	}
	m.Disconnected("lost")
	return m
}

func deployed(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// exprs are the queries of the dashboard.
func exprs(t testing.TB, dashboard string) (all []string) {
	t.Helper()
	var doc any
	if err := json.Unmarshal([]byte(dashboard), &doc); err != nil {
		t.Fatal(err)
	}
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				find(x)
			}
		case map[string]any:
			if e, ok := v["expr"].(string); ok {
				all = append(all, e)
			}
			for _, x := range v {
				find(x)
			}
		}
	}
	find(doc)
	return all
}

var (
	selector = regexp.MustCompile(`\b((?:approvalbot|process|go)_[a-z0-9_]+)(\{[^}]*\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
)

// Every selector of the dashboard and the alerts selects something in a process in which it all has happened. So no
// metric is misspelt there, and neither a label or a value of one.
func TestDeployedQueries(t *testing.T) {
	series := gathered(t, lived(t))
	alerts := deployed(t, "deploy/prometheus-alerts.yaml")
	queries := append(exprs(t, deployed(t, "deploy/grafana-dashboard.json")), alerts)
	found := 0
	for _, q := range queries {
		for _, s := range selector.FindAllStringSubmatch(q, -1) {
			found++
			if !selects(t, series[s[1]], s[2]) {
				t.Errorf("%s selects nothing, in\n%s", s[0], q)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d selectors were found", found)
	}
}

func selects(t *testing.T, series []map[string]string, braces string) bool {
	t.Helper()
next:
	for _, s := range series {
		for _, m := range matcher.FindAllStringSubmatch(braces, -1) {
			if m[1] == "job" || m[1] == "instance" { // Prometheus adds them
				continue
			}
			value, named := s[m[1]]
			re := regexp.QuoteMeta(m[3])
			if strings.HasSuffix(m[2], "~") {
				re = m[3]
			}
			if !named || regexp.MustCompile("^(?:"+re+")$").MatchString(value) == strings.HasPrefix(m[2], "!") {
				continue next
			}
		}
		return true
	}
	return false
}

// gathered are the series by name, as Prometheus stores them.
func gathered(t *testing.T, m *Metrics) map[string][]map[string]string {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]map[string]string{}
	for _, f := range families {
		names := []string{f.GetName()}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			names = []string{f.GetName() + "_bucket", f.GetName() + "_sum", f.GetName() + "_count"}
		}
		for _, s := range f.Metric {
			labels := map[string]string{}
			for _, l := range s.Label {
				labels[l.GetName()] = l.GetValue()
			}
			for _, n := range names {
				out[n] = append(out[n], labels)
			}
		}
	}
	return out
}

// Grouping by a label that no series has makes one group of all, silently.
func TestDeployedLabels(t *testing.T) {
	series := gathered(t, lived(t))
	known := map[string]bool{"job": true, "instance": true, "le": true}
	for _, all := range series {
		for _, s := range all {
			for l := range s {
				known[l] = true
			}
		}
	}
	text := deployed(t, "deploy/prometheus-alerts.yaml") + strings.Join(exprs(t, deployed(t, "deploy/grafana-dashboard.json")), "\n")
	for _, by := range regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		for l := range strings.SplitSeq(by[1], ",") {
			if l = strings.TrimSpace(l); !known[l] {
				t.Errorf("no series has the label %q", l)
			}
		}
	}
}

// Whoever is woken by an alert finds it in the manual, and every metric of ours is explained there.
func TestDocumented(t *testing.T) {
	manual := deployed(t, "docs/operations.md")
	for _, a := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(deployed(t, "deploy/prometheus-alerts.yaml"), -1) {
		if !strings.Contains(manual, a[1]) {
			t.Errorf("docs/operations.md doesn't mention the alert %s", a[1])
		}
	}
	ch := make(chan *prometheus.Desc, 1000)
	lived(t).registry.Describe(ch)
	close(ch)
	name := regexp.MustCompile(`fqName: "(approvalbot_\w+)"`)
	for d := range ch {
		if m := name.FindStringSubmatch(d.String()); m != nil && !strings.Contains(manual, "`"+m[1]) {
			t.Errorf("docs/operations.md doesn't explain %s", m[1])
		}
	}
}

// Without the job's label a dashboard mixes two bots.
func TestDashboardFollowsItsJob(t *testing.T) {
	for _, e := range exprs(t, deployed(t, "deploy/grafana-dashboard.json")) {
		for _, s := range selector.FindAllStringSubmatch(e, -1) {
			if !strings.Contains(s[2], `job=~"$job"`) {
				t.Errorf("%s in %s", s[0], e)
			}
		}
	}
}
