package metrics

import "sync"

// other is the label of everything that isn't counted by name.
const other = "other"

const (
	wordMost  = 60 // longer than any word of Slack's or ours
	wordsMost = 60 // different ones that one label may take
)

// words bounds a label whose values are words of others: the first so many different ones keep their name. What doesn't
// look like a word has none.
type words struct {
	mu   sync.Mutex
	seen map[string]bool
}

// newWords begins with the values that are known; those keep their name whatever comes first.
func newWords(known ...string) *words {
	w := &words{seen: map[string]bool{}}
	for _, k := range known {
		w.seen[k] = true
	}
	return w
}

func (w *words) label(value string) string {
	if !isWord(value) {
		return other
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.seen[value] {
		if len(w.seen) >= wordsMost {
			return other
		}
		w.seen[value] = true
	}
	return value
}

// optional is label for a value that may be missing.
func (w *words) optional(value string) string {
	if value == "" {
		return ""
	}
	return w.label(value)
}

func isWord(s string) bool {
	if s == "" || len(s) > wordMost {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
