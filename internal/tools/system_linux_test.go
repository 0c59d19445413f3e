package tools

import (
	"encoding/json"
	"errors"
	"testing"
)

// What the kernel shows of itself as files is none: reading it can block for ever, or show what this process holds.
func TestKernelFilesAreNoFiles(t *testing.T) {
	b, err := OpenBuiltin(Options{Workspace: "/proc/self"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	set, err := NewSet(b.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	read, _ := set.Get("read_file")
	for _, path := range []string{"status", "environ", "maps"} {
		args, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		var refused *Error
		if out, err := read.Call(t.Context(), args); !errors.As(err, &refused) || refused.Code != CodeNotAllowed {
			t.Errorf("reading %s gave %q, %v", path, out.Text, err)
		}
	}
}
