package model

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Price is what tokens cost, in US dollars per million. None is built in: providers change theirs, and a figure that
// has gone stale is worse than none. The zero value is not known.
type Price struct {
	known                                bool
	input, output, cacheRead, cacheWrite int64 // millionths of a dollar per million tokens
}

// errPrice says what a price looks like.
var errPrice = errors.New("it has to be INPUT/OUTPUT or INPUT/OUTPUT/CACHE-READ/CACHE-WRITE, each in US dollars per million tokens, such as 3/15 or 3/15/0.3/3.75")

// ParsePrice reads a price such as 3/15 or 3/15/0.3/3.75. Tokens of the cache cost as much as others where it doesn't
// say what they do.
func ParsePrice(s string) (Price, error) {
	parts := strings.Split(strings.TrimSpace(s), "/")
	if len(parts) != 2 && len(parts) != 4 {
		return Price{}, errPrice
	}
	var amounts [4]int64
	for i, part := range parts {
		a, err := dollars(strings.TrimSpace(part))
		if err != nil {
			return Price{}, err
		}
		amounts[i] = a
	}
	p := Price{known: true, input: amounts[0], output: amounts[1], cacheRead: amounts[0], cacheWrite: amounts[0]}
	if len(parts) == 4 {
		p.cacheRead, p.cacheWrite = amounts[2], amounts[3]
	}
	return p, nil
}

// maxDollars keeps every product within an int64, and catches prices per token or per thousand.
const maxDollars = 10_000

// dollars reads a decimal number exactly, in millionths.
func dollars(s string) (int64, error) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole == "" || len(whole) > 5 || len(fraction) > 6 || strings.HasSuffix(s, ".") {
		return 0, fmt.Errorf("%q is no price: %w", s, errPrice)
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 63)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no price: %w", s, errPrice)
	case n > maxDollars*1_000_000:
		return 0, fmt.Errorf("%q is more than %d dollars for a million tokens: %w", s, maxDollars, errPrice)
	}
	return int64(n), nil
}

// UnmarshalText is ParsePrice, for settings. Nothing at all is no price.
func (p *Price) UnmarshalText(text []byte) (err error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		*p = Price{}
		return nil
	}
	*p, err = ParsePrice(string(text))
	return err
}

// String is the price as it is written into a setting; empty if it isn't known.
func (p Price) String() string {
	if !p.known {
		return ""
	}
	parts := []string{decimal(p.input), decimal(p.output)}
	if p.cacheRead != p.input || p.cacheWrite != p.input {
		parts = append(parts, decimal(p.cacheRead), decimal(p.cacheWrite))
	}
	return strings.Join(parts, "/")
}

func decimal(n int64) string {
	s := fmt.Sprintf("%d.%06d", n/1_000_000, n%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// maxTokens is more than any sample has; what a provider reports above it is no count.
const maxTokens = 100_000_000

// Micros is what a sample cost, in millionths of a dollar, rounded to the nearest; false if the price isn't known.
func (p Price) Micros(u Usage) (int64, bool) {
	if !p.known {
		return 0, false
	}
	count := func(n int) int64 { return int64(min(max(n, 0), maxTokens)) }
	read, write := count(u.CacheReadTokens), count(u.CacheWriteTokens)
	plain := max(count(u.InputTokens)-read-write, 0)
	var micros, rest int64
	for _, part := range [][2]int64{{plain, p.input}, {read, p.cacheRead}, {write, p.cacheWrite}, {count(u.OutputTokens), p.output}} {
		product := part[0] * part[1] // millionths of a millionth
		micros, rest = micros+product/1_000_000, rest+product%1_000_000
	}
	return micros + (rest+500_000)/1_000_000, true
}
