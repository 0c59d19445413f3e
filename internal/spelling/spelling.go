// Package spelling finds what somebody may have meant who wrote a name that nobody knows.
package spelling

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Closest is the known name with the fewest characters to add, take away or exchange; case doesn't count.
func Closest(name string, known []string) (best string, apart int) {
	apart = math.MaxInt
	for _, k := range known {
		if d := Distance(strings.ToUpper(name), strings.ToUpper(k)); d < apart {
			best, apart = k, d
		}
	}
	return best, apart
}

// DidYouMean is a question to go behind a sentence about an unknown name, with a space in front; empty where no known name
// is near. Near is what a typing error or two would make of it, fewer in a short name, or a known name that contains it.
func DidYouMean(name string, known []string) string {
	best, apart := Closest(name, known)
	if apart > min(2, utf8.RuneCountInString(name)/3) {
		best = containing(name, known)
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %s?", best)
}

// shortest is how much of a name has to be written for it to be found by a part.
const shortest = 3

// containing is the only known name that contains this one.
func containing(part string, known []string) (found string) {
	if utf8.RuneCountInString(part) < shortest {
		return ""
	}
	for _, k := range known {
		if !strings.Contains(strings.ToUpper(k), strings.ToUpper(part)) {
			continue
		}
		if found != "" {
			return "" // which of them isn't known
		}
		found = k
	}
	return found
}

// Distance counts the characters to add, take away or exchange between two names (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := above
			if a[i] != b[j] {
				cost++
			}
			above = row[j+1]
			row[j+1] = min(cost, row[j]+1, above+1)
		}
	}
	return row[len(b)]
}
