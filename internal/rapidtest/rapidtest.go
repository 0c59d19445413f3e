// Package rapidtest says how many cases a property test tries where nobody says otherwise: rapid's usual hundred is
// little for one that only computes, and minutes for one that opens a journal on disk in each case. CI has two cores.
package rapidtest

import (
	"flag"
	"strconv"
	"testing"
)

// Checks lets a property test try n cases. More, in all of them: go test -rapid.checks=N.
func Checks(t testing.TB, n int) {
	t.Helper()
	const name = "rapid.checks"
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == name })
	if asked {
		return
	}
	checks := flag.Lookup(name).Value
	before := checks.String()
	if err := checks.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(before) })
}
