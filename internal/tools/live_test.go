package tools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type named struct {
	Tool
	name string
}

func (n named) Spec() Spec { return Spec{Name: n.name, InputSchema: object(nil, nil)} }

func (s *Set) names() (all []string) {
	for _, spec := range s.Specs() {
		all = append(all, spec.Name)
	}
	return all
}

// Whoever comes first, the order is the same; a set that somebody has doesn't change.
func TestLive(t *testing.T) {
	l, err := NewLive([]Tool{named{name: "a"}}, "x", "y")
	if err != nil {
		t.Fatal(err)
	}
	old := l.Set()
	for _, step := range []struct {
		source string
		tools  []Tool
		want   []string
		wrong  bool
	}{
		{"y", []Tool{named{name: "y1"}}, []string{"a", "y1"}, false},
		{"x", []Tool{named{name: "x1"}, named{name: "x2"}}, []string{"a", "x1", "x2", "y1"}, false},
		{"x", []Tool{named{name: "a"}}, []string{"a", "x1", "x2", "y1"}, true},  // there is one of that name
		{"x", []Tool{named{name: "y1"}}, []string{"a", "x1", "x2", "y1"}, true}, // of another source
		{"z", nil, []string{"a", "x1", "x2", "y1"}, true},                       // no source
		{"x", nil, []string{"a", "y1"}, false},
	} {
		if err := l.Replace(step.source, step.tools...); (err != nil) != step.wrong {
			t.Errorf("%+v: %v", step, err)
		}
		if diff := cmp.Diff(step.want, l.Set().names()); diff != "" {
			t.Errorf("%+v: %s", step, diff)
		}
	}
	if diff := cmp.Diff([]string{"a"}, old.names()); diff != "" {
		t.Errorf("a set that was taken changed: %s", diff)
	}
}
