//go:build linux

package confine

import (
	"maps"
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// Every name that is filtered exists on every architecture that we say we know; on the machine of the tests the kernel
// takes the filter, which the tests of attacks show.
func TestFilterKnowsItsCalls(t *testing.T) {
	for _, goarch := range []string{"amd64", "arm64"} {
		for _, network := range []bool{false, true} {
			info, err := arch.GetInfo(goarch)
			if err != nil {
				t.Fatal(err)
			}
			p := policy(goarch, network)
			var missing []string
			for _, group := range p.Syscalls {
				names := slices.Clone(group.Names)
				for _, n := range group.NamesWithCondtions {
					names = append(names, n.Name)
				}
				for _, name := range names {
					if _, ok := info.SyscallNames[name]; !ok {
						missing = append(missing, name)
					}
				}
			}
			if len(missing) > 0 {
				t.Errorf("%s: not in the table: %v", goarch, missing)
			}
			if program, err := assemble(goarch, p); goarch == "amd64" && (err != nil || len(program) > 4096) {
				t.Errorf("%s: %d instructions, %v", goarch, len(program), err)
			}
		}
	}
	for name := range maps.Keys(onlyOn) {
		if !slices.Contains(deniedCalls, name) {
			t.Errorf("%s isn't denied anywhere", name)
		}
	}
}
