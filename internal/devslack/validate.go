package devslack

import (
	"encoding/json"
	"fmt"
)

// ValidateBlocks checks the blocks of a message as chat.postMessage and chat.update do here, and returns what is wrong with
// them, in Slack's words; nothing if Slack would take them.
func ValidateBlocks(blocks json.RawMessage) []string {
	normalized, problems := checkBlocks(blocks, surfaceMessage)
	if len(problems) == 0 && blocksTooLong(normalized) {
		return []string{fmt.Sprintf("[ERROR] msg_blocks_too_long: more than %d characters", maxBlocksSize)}
	}
	return inSlacksWords(problems)
}

// ValidateView checks a modal or a Home tab as views.open and views.publish do here.
func ValidateView(view json.RawMessage) []string {
	_, problems := checkView(view)
	if len(problems) == 0 && len(view) > maxViewSize {
		return []string{fmt.Sprintf("[ERROR] view_too_large: more than %d bytes", maxViewSize)}
	}
	return inSlacksWords(problems)
}

func inSlacksWords(problems []problem) []string {
	var words []string
	for _, p := range problems {
		words = append(words, p.String())
	}
	return words
}
