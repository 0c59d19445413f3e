package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const output = `goos: linux
=== RUN   TestSixtyAsksInOneChannel
=== ATTR  TestSixtyAsksInOneChannel seconds-per-ask 1.100
=== ATTR  TestSixtyAsksInOneChannel refusals 0
--- PASS: TestSixtyAsksInOneChannel (0.31s)
BenchmarkAppend
BenchmarkAppend-2     	       4	 312139612 ns/op	     16136 appends64/s	         3.148 bare-ms	         27.20 x64	 4340254 B/op
BenchmarkOdd-thing 12 of them
PASS
ok  	approvalbot/internal/ledger	7.413s
`

func TestParse(t *testing.T) {
	values, failed, err := parse(strings.NewReader(output))
	if err != nil || failed {
		t.Fatal(failed, err)
	}
	want := map[metric]float64{
		{"TestSixtyAsksInOneChannel", "seconds-per-ask"}: 1.1,
		{"TestSixtyAsksInOneChannel", "refusals"}:        0,
		{"BenchmarkAppend", "ns/op"}:                     312139612,
		{"BenchmarkAppend", "appends64/s"}:               16136,
		{"BenchmarkAppend", "bare-ms"}:                   3.148,
		{"BenchmarkAppend", "x64"}:                       27.2,
		{"BenchmarkAppend", "B/op"}:                      4340254,
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Error(diff)
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	err := run(strings.NewReader(output), &out, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("with figures missing: %v", err)
	}
	for _, line := range []string{
		"64 writers against one                     27.2 ×   ≥ 10.0 ×   ok",
		"60 asks in one channel: seconds each       1.100 s  ≤ 1.050 s  not met",
		"dev: from start until ready                -        ≤ 500 ms   missing",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no line %q in\n%s", line, out.String())
		}
	}
}

func TestFailuresAreFailures(t *testing.T) {
	for _, line := range []string{"FAIL", "FAIL\tapprovalbot/internal/ledger [build failed]", "--- FAIL: BenchmarkAppend", "panic: no"} {
		if _, failed, err := parse(strings.NewReader(line)); err != nil || !failed {
			t.Errorf("%q: %v %v", line, failed, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(output)
	f.Add("Benchmark- 1 2")
	f.Fuzz(func(t *testing.T, in string) {
		if err := run(strings.NewReader(in), io.Discard, io.Discard); err == nil && !strings.Contains(in, "BenchmarkDevStart") {
			t.Error("a figure is missing and nobody says so")
		}
	})
}
