package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"approvalbot/internal/ledger/ledgertest"
)

// BenchmarkDevStart starts the built program as a person would and waits for the line that says that one can begin.
// start-ms is the first start, in an empty directory; again-ms one that finds its data there.
func BenchmarkDevStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "approvalbot")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	startDev(b, program, filepath.Join(b.TempDir(), "warm")) // the program's file has to be read once
	var first, again ledgertest.Times
	for b.Loop() {
		dir := filepath.Join(b.TempDir(), "data")
		first = append(first, startDev(b, program, dir))
		again = append(again, startDev(b, program, dir))
	}
	b.ReportMetric(first.Milliseconds(), "start-ms")
	b.ReportMetric(again.Milliseconds(), "again-ms")
}

// startDev returns how long dev took until it was ready, and ends it.
func startDev(b *testing.B, program, dir string) time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "dev", "--slack-addr", "127.0.0.1:0", "--api-addr", "127.0.0.1:0", "--data-dir", dir)
	cmd.Env = []string{"HOME=" + os.Getenv("HOME"), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	ready, took := false, time.Duration(0)
	for lines := bufio.NewScanner(out); !ready && lines.Scan(); {
		ready, took = lines.Text() == "ready", time.Since(begin)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.Error(err)
	}
	if err := cmd.Wait(); err != nil || !ready {
		b.Fatalf("ready: %v; it ended with %v", ready, err)
	}
	return took
}
