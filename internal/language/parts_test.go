package language

import "testing"

// Each text stands in one part of the catalogue: of two translations, one would be overlooked.
func TestPartsDontOverlap(t *testing.T) {
	seen := map[string]int{}
	for i, part := range []map[string]string{zhCards, zhDecide, zhGrants, zhOperate, zhPlaces, zhRefusals, zhRuns, zhTime, zhTools} {
		for english := range part {
			if first, twice := seen[english]; twice {
				t.Errorf("%q stands in the parts %d and %d", english, first, i)
			}
			seen[english] = i
		}
	}
}
