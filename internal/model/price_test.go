package model

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPrice(t *testing.T) {
	for _, c := range []struct {
		price string
		usage Usage
		want  int64
	}{
		{"3/15", Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000}, 18_000_000},
		{"3/15", Usage{InputTokens: 12_000, OutputTokens: 345}, 41_175},
		{"3/15/0.3/3.75", Usage{InputTokens: 10_000, CacheReadTokens: 8_000, CacheWriteTokens: 1_000, OutputTokens: 100}, 3_000 + 2_400 + 3_750 + 1_500},
		{"3/15", Usage{InputTokens: 10_000, CacheReadTokens: 8_000}, 30_000},
		{"0.000001/0", Usage{InputTokens: 499_999}, 0},
		{"0.000001/0", Usage{InputTokens: 500_000}, 1},
		{"0/0", Usage{InputTokens: 5_000, OutputTokens: 5_000}, 0},
		{"1/1", Usage{InputTokens: 5, CacheReadTokens: 10, OutputTokens: -3}, 10},
		{"10000/10000/10000/10000", Usage{InputTokens: 1 << 62, OutputTokens: 1 << 62}, 2_000_000_000_000},
	} {
		p, err := ParsePrice(c.price)
		if err != nil {
			t.Fatal(c.price, err)
		}
		if got, known := p.Micros(c.usage); !known || got != c.want {
			t.Errorf("%s for %+v: %d, want %d", c.price, c.usage, got, c.want)
		}
		if p.String() != c.price && c.price != "10000/10000/10000/10000" {
			t.Errorf("%s is written as %s", c.price, p)
		}
	}
	if _, known := (Price{}).Micros(Usage{InputTokens: 1}); known {
		t.Error("no price is one")
	}
	for _, bad := range []string{"3", "3/", "/3", "3/15/1", "3/15/1/2/3", "-1/2", "+1/2", "1e3/2", "$3/15", "3.1234567/1", "3./1", "10001/1", "3,5/1", "NaN/1", "0x3/1", "1_0/1"} {
		if p, err := ParsePrice(bad); err == nil {
			t.Errorf("%q is read as %s", bad, p)
		}
	}
}

func FuzzPrice(f *testing.F) {
	for _, s := range []string{"3/15", "3/15/0.3/3.75", "", "1.5/x", "10000/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePrice(s)
		if err != nil {
			return
		}
		if again, err := ParsePrice(p.String()); err != nil || again != p {
			t.Fatalf("%q is %s, which is %s (%v)", s, p, again, err)
		}
	})
}

// TestPriceNeverNegative: whatever is counted, a cost never falls when more is used.
func TestPriceNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Price{known: true, input: rapid.Int64Range(0, 1e10).Draw(t, "in"), output: rapid.Int64Range(0, 1e10).Draw(t, "out")}
		p.cacheRead, p.cacheWrite = p.input, p.input
		u := Usage{InputTokens: rapid.Int().Draw(t, "input"), OutputTokens: rapid.Int().Draw(t, "output")}
		less, _ := p.Micros(u)
		u.OutputTokens = max(u.OutputTokens, rapid.Int().Draw(t, "more"))
		if more, _ := p.Micros(u); less < 0 || more < less {
			t.Fatalf("%d, then %d", less, more)
		}
	})
}
