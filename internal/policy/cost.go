package policy

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// evalCost is where evaluating one condition is given up, in units of which each step is
// one. It takes some ten milliseconds to get there, which no sensible condition does: a
// search through the text of a large file is a quarter of it.
const evalCost = 200_000

// prices are what functions cost. CEL has prices of its own, by the types of the operands;
// those of arguments are known only when a call is made, and without a type CEL takes one
// unit for everything. Whoever writes arguments (a model) must not get work for nothing.
type prices struct{}

// CallCost is the price of one call of a function; nil leaves it to CEL.
func (prices) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	units := uint64(1)
	switch function {
	case operators.Add:
		units += weight(result) * 4 // it also takes memory
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		units += min(weight(args[0]), weight(args[len(args)-1]))
	case operators.In:
		if list, ok := args[len(args)-1].(traits.Lister); ok {
			units += weight(list)
		}
	case "matches":
		units += weight(args[0]) * 8
	case "contains", "startsWith", "endsWith", "lowerAscii", "string", "int", "double", "timestamp", "duration":
		units += weight(args[0])
	case "sets.contains", "sets.intersects", "sets.equivalent":
		a, isList := args[0].(traits.Lister)
		b, areLists := args[1].(traits.Lister)
		if isList && areLists {
			units += comparisons(a, b)
		}
	default:
		if units = texts(args); units == 1 {
			return nil
		}
	}
	return &units
}

// texts is the price of a function of which nothing else is known: it may read each text
// that it gets, as size does to count its characters.
func texts(args []ref.Val) (units uint64) {
	units = 1
	for _, a := range args {
		switch a := a.(type) {
		case types.String:
			units += uint64(len(a)) / 64
		case types.Bytes:
			units += uint64(len(a)) / 64
		}
	}
	return units
}

// weight is how much there is of a value: a unit for 64 bytes of a text and for each
// element.
func weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 64
	case types.Bytes:
		return uint64(len(v)) / 64
	case traits.Lister:
		return elements(v, nil)
	case traits.Mapper:
		return elements(v, v)
	}
	return 0
}

func elements(c traits.Iterable, m traits.Mapper) (units uint64) {
	for it := c.Iterator(); it.HasNext() == types.True; {
		next := it.Next()
		units += 1 + weight(next)
		if m != nil {
			if value, ok := m.Find(next); ok {
				units += weight(value)
			}
		}
	}
	return units
}
