package devslack

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An Invalid is what this Slack would refuse: the code of its answer, and each
// problem with where it stands.
type Invalid struct {
	Code     string
	Problems []string
}

func (e *Invalid) Error() string {
	return fmt.Sprintf("devslack: %s: %s", e.Code, strings.Join(e.Problems, "; "))
}

// ValidateMessage reports, as an [*Invalid], what would be refused of a
// message when it is posted or updated: both have to work, or a card that
// stands could never be changed again. Lengths count as stored, escaped.
func ValidateMessage(text string, blocks json.RawMessage) error {
	if n := utf8.RuneCountInString(escapeText(text, true)); n > maxUpdateText {
		return &Invalid{"msg_too_long", []string{fmt.Sprintf("[ERROR] the text has %d characters, and an update takes %d [json-pointer:/text]", n, maxUpdateText)}}
	}
	if len(blocks) == 0 {
		if text == "" {
			return &Invalid{Code: "no_text"}
		}
		return nil
	}
	normalized, problems := checkBlocks(blocks, surfaceMessage)
	switch {
	case len(problems) > 0:
		return invalid("invalid_blocks", problems)
	case text == "":
		return &Invalid{"no_text", []string{"[ERROR] blocks without a text: notifications and screen readers get nothing [json-pointer:/text]"}}
	case blocksTooLong(normalized):
		return &Invalid{"msg_blocks_too_long", []string{fmt.Sprintf("[ERROR] the blocks have %d characters, and a message takes %d [json-pointer:/blocks]", utf8.RuneCount(normalized), maxBlocksSize)}}
	}
	return nil
}

// ValidateView reports, as an [*Invalid], what would be refused of a modal or
// a Home tab.
func ValidateView(view json.RawMessage) error {
	if len(view) > maxViewSize {
		return &Invalid{"view_too_large", []string{fmt.Sprintf("[ERROR] the view has %d bytes, and may have %d [json-pointer:/view]", len(view), maxViewSize)}}
	}
	if _, problems := checkView(view); len(problems) > 0 {
		return invalid("invalid_arguments", problems)
	}
	return nil
}

func invalid(code string, problems []problem) error {
	e := &Invalid{Code: code}
	for _, p := range problems {
		e.Problems = append(e.Problems, p.String())
	}
	return e
}
