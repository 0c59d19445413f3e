package language

import "maps"

// chinese is the catalogue in Simplified Chinese. Its parts are in zh_*.go, one for each part of the product.
var chinese = join(parts...)

var parts = []map[string]string{zhCards, zhDecide, zhGrants, zhOperate, zhPlaces, zhRefusals, zhRuns, zhTime, zhTools}

func join(parts ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}
