package devslack

import (
	"encoding/json"
	"fmt"
)

type surface int

const (
	surfaceMessage surface = iota
	surfaceModal
	surfaceHome
)

type problem struct{ Pointer, Message string }

func checkBlocks(raw json.RawMessage, on surface) (json.RawMessage, []problem) {
	var blocks []map[string]any
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, []problem{{"/blocks", "must be an array"}}
	}
	for i, b := range blocks {
		if _, ok := b["block_id"]; !ok {
			b["block_id"] = fmt.Sprintf("b%d", i)
		}
		if text, ok := b["text"].(map[string]any); ok {
			if s, _ := text["text"].(string); len([]rune(s)) > 3000 {
				return nil, []problem{{fmt.Sprintf("/blocks/%d/text/text", i), "must be less than 3001 characters"}}
			}
		}
	}
	out, _ := json.Marshal(blocks)
	return out, nil
}

func checkView(raw json.RawMessage) (json.RawMessage, []problem) {
	var v map[string]json.RawMessage
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, []problem{{"/view", "must be an object"}}
	}
	blocks, problems := checkBlocks(v["blocks"], surfaceModal)
	if problems != nil {
		return nil, problems
	}
	v["blocks"] = blocks
	out, _ := json.Marshal(v)
	return out, nil
}
