package ledger

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets the property tests try fewer cases than rapid does by itself: each opens a journal on disk. More:
// -rapid.checks=1000.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		flag.Set("rapid.checks", "20")
	}
	os.Exit(m.Run())
}
