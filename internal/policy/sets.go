package policy

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// sets are the functions sets.contains, sets.intersects and sets.equivalent, as CEL's
// extension has them. Theirs compare each element of one list with each of the other
// before anybody looks at what it cost; two lists of a call would keep a decision for hours.
func sets() []cel.EnvOption {
	list := cel.ListType(cel.TypeParamType("T"))
	var all []cel.EnvOption
	for name, is := range map[string]func(a, b traits.Lister) ref.Val{
		"contains":   includes,
		"intersects": intersects,
		"equivalent": func(a, b traits.Lister) ref.Val {
			if is := includes(a, b); is != types.True {
				return is
			}
			return includes(b, a)
		},
	} {
		all = append(all, cel.Function("sets."+name, cel.Overload("list_sets_"+name+"_list", []*cel.Type{list, list}, cel.BoolType,
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				x, y := a.(traits.Lister), b.(traits.Lister)
				if comparisons(x, y) > evalCost {
					return types.NewErrFromString(tooLong)
				}
				return is(x, y)
			}))))
	}
	return all
}

// comparisons is what it costs to compare each element of one list with each of the other.
func comparisons(a, b traits.Lister) uint64 {
	most := weight(a) * length(b)
	return max(most, weight(b)*length(a))
}

func length(l traits.Lister) uint64 {
	n, _ := l.Size().(types.Int)
	return uint64(max(n, 0))
}

func includes(list, part traits.Lister) ref.Val {
	for it := part.Iterator(); it.HasNext() == types.True; {
		if is := list.Contains(it.Next()); is != types.True {
			return is
		}
	}
	return types.True
}

func intersects(a, b traits.Lister) ref.Val {
	for it := a.Iterator(); it.HasNext() == types.True; {
		if b.Contains(it.Next()) == types.True {
			return types.True
		}
	}
	return types.False
}
