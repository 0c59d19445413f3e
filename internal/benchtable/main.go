// Benchtable reads the output of go test on its standard input, passes it on to standard error, and prints the figures
// that have a target as a table: name, value, target, and whether it is met.
//
// The targets are ratios wherever that is possible, because a ratio means the same on a laptop and on a loaded server. A
// missed target is a line in the table and no failure; a figure that is missing, or a test that failed, is one.
//
// A figure is a metric of a benchmark ([testing.B.ReportMetric]) or, where the measurement runs in fake time, an
// attribute of a test ([testing.T.Attr]).
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A figure is one line of the table.
type figure struct {
	name         string
	source, unit string // the benchmark or test, and its metric
	bound        bound
	target       float64
	format       string // of value and target
}

// A bound says on which side of the target is the good one.
type bound string

const (
	atMost  bound = "≤"
	atLeast bound = "≥"
	none    bound = "" // told only for scale
)

// figures are the table, in its order.
var figures = []figure{
	{"a bare durable commit", "BenchmarkAppend", "bare-ms", none, 0, "%.2f ms"},
	{"one append, one writer", "BenchmarkAppend", "one/bare", none, 0, "%.2f commits"},
	{"64 writers against one", "BenchmarkAppend", "x64", atLeast, 10, "%.1f ×"},
	{"a tool call that needs no asking", "BenchmarkToolCall", "overhead-ms", none, 0, "%.2f ms"},
	{"  in bare commits of then (two needed)", "BenchmarkToolCall", "overhead/bare", atMost, 2.8, "%.1f"},
	{"  eight side by side, each", "BenchmarkToolCall", "overhead8/bare", none, 0, "%.1f"},
	{"click received → tool started", "BenchmarkClick", "start-ms", none, 0, "%.2f ms"},
	{"  in bare commits of then", "BenchmarkClick", "start/bare", atMost, 2.4, "%.1f"},
	{"click → buttons gone in Slack", "BenchmarkClick", "cleared-ms", none, 0, "%.1f ms"},
	{"click → terminal card in Slack", "BenchmarkClick", "terminal-ms", none, 0, "%.1f ms"},
	{"  in bare commits of then", "BenchmarkClick", "terminal/bare", none, 0, "%.1f"},
	{"10,000 pending: memory each", "BenchmarkTenThousandPending", "B/pending", atMost, 8192, "%.0f B"},
	{"  list a run's, against 10 pending", "BenchmarkTenThousandPending", "list-ratio", atMost, 1.25, "%.2f ×"},
	{"  resolve one, against 10 pending", "BenchmarkTenThousandPending", "resolve-ratio", atMost, 1.25, "%.2f ×"},
	{"an approval, 100,000 events against 1,000", "BenchmarkApprovalInLongJournal", "growth", atMost, 1.25, "%.2f ×"},
	{"60 asks in one channel: seconds each", "TestSixtyAsksInOneChannel", "seconds-per-ask", atMost, 1.05, "%.3f s"},
	{"  refused by Slack as too many (429)", "TestSixtyAsksInOneChannel", "refusals", atMost, 0, "%.0f"},
	{"200 runs in 20 channels: seconds per ask", "TestTwoHundredRunsAtOnce", "seconds-per-ask", atMost, 1.05, "%.3f s"},
	{"  refused by Slack as too many (429)", "TestTwoHundredRunsAtOnce", "refusals", atMost, 0, "%.0f"},
	{"  until a decided card has no buttons", "TestTwoHundredRunsAtOnce", "seconds-with-buttons", atMost, 5, "%.1f s"},
	{"  until all 1,000 cards are confirmed", "TestTwoHundredRunsAtOnce", "minutes-to-clear", atMost, 21, "%.0f min"},
	{"  memory at the peak, per ask", "TestTwoHundredRunsAtOnce", "peak-KiB-per-ask", none, 0, "%.0f KiB"},
	{"a decision with 100 rules", "BenchmarkDecideRules", "µs/decision", atMost, 100, "%.0f µs"},
	{"  allocations", "BenchmarkDecideRules", "allocs/op", none, 0, "%.0f"},
	{"a shell command, understood", "BenchmarkParseCommand", "us/command", atMost, 50, "%.0f µs"},
	{"metrics and log, per event", "BenchmarkReadings", "ns/op", none, 0, "%.0f ns"},
	{"dev: from start until ready", "BenchmarkDevStart", "start-ms", atMost, 500, "%.0f ms"},
}

func main() {
	if err := run(os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out, through io.Writer) error {
	values, failed, err := parse(io.TeeReader(in, through))
	if err != nil {
		return fmt.Errorf("read the figures: %w", err)
	}
	missing, err := table(out, values)
	switch {
	case err != nil:
		return fmt.Errorf("print the table: %w", err)
	case failed:
		return errors.New("a benchmark failed; its output is above the table")
	case missing > 0:
		return fmt.Errorf("%d figures are missing: did all benchmarks run?", missing)
	}
	return nil
}

// A metric is what a value is of.
type metric struct{ source, unit string }

// parse finds the metrics in go test's output, and whether something failed. Of a benchmark that ran several times the
// last one counts.
func parse(in io.Reader) (values map[metric]float64, failed bool, err error) {
	values = map[metric]float64{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0:
		case words[0] == "FAIL", words[0] == "panic:", len(words) > 1 && words[0] == "---" && words[1] == "FAIL:":
			failed = true
		case len(words) == 5 && words[0] == "===" && words[1] == "ATTR":
			if v, err := strconv.ParseFloat(words[4], 64); err == nil {
				values[metric{words[2], words[3]}] = v
			}
		case strings.HasPrefix(words[0], "Benchmark"):
			benchmark(values, words)
		}
	}
	return values, failed, lines.Err()
}

// benchmark takes in a line such as "BenchmarkX-2  100  12 ns/op  3 one/bare".
func benchmark(values map[metric]float64, words []string) {
	name := words[0]
	if cpus := strings.LastIndex(name, "-"); cpus > 0 {
		name = name[:cpus]
	}
	for i := 2; i+1 < len(words); i += 2 {
		v, err := strconv.ParseFloat(words[i], 64)
		if err != nil {
			return // a line that only looks like a result
		}
		values[metric{name, words[i+1]}] = v
	}
}

// table prints the figures and counts those that are missing.
func table(out io.Writer, values map[metric]float64) (missing int, err error) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nwhat\tvalue\ttarget\t")
	fmt.Fprintln(w, "----\t-----\t------\t")
	for _, f := range figures {
		v, ok := values[metric{f.source, f.unit}]
		if !ok {
			missing++
			fmt.Fprintf(w, "%s\t-\t%s\tmissing\n", f.name, f.wanted())
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.name, fmt.Sprintf(f.format, v), f.wanted(), f.verdict(v))
	}
	return missing, w.Flush()
}

func (f figure) wanted() string {
	if f.bound == none {
		return ""
	}
	return string(f.bound) + " " + fmt.Sprintf(f.format, f.target)
}

func (f figure) verdict(v float64) string {
	switch f.bound {
	case atMost:
		return verdict(v <= f.target)
	case atLeast:
		return verdict(v >= f.target)
	}
	return ""
}

func verdict(met bool) string {
	if met {
		return "ok"
	}
	return "not met"
}
