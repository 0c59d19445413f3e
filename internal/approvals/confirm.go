package approvals

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"approvalbot/internal/ledger"
)

// Of what is critical, a click must not be enough: hands click before eyes have read. Whoever approves it types what it is
// about. The rule is one function that every surface asks for the word, and the registry compares: no surface can forget it.

// riskCritical is the risk whose approval is confirmed by typing.
const riskCritical = "critical"

// maxConfirmation is the longest word that people are asked to type, in characters: nobody types more without mistakes.
const maxConfirmation = 80

// Confirmation is what has to be typed to approve an ask: the name of its target, or that of the tool where the target has
// none that can be typed from what is seen. It is empty for asks that a click is enough for.
func Confirmation(q *ledger.ApprovalRequested) (word string, isTool bool) {
	switch {
	case q.Risk != riskCritical:
		return "", false
	case typable(q.Preview.Target):
		return q.Preview.Target, false
	}
	return q.Tool, true
}

// typable tells whether somebody who sees a word can type it: every character of it can be seen, it is one line, and no
// blank in it can be taken for another.
func typable(s string) bool {
	if s == "" || s != strings.TrimSpace(s) || !utf8.ValidString(s) || utf8.RuneCountInString(s) > maxConfirmation || strings.Contains(s, "  ") {
		return false
	}
	for _, r := range s {
		drawn := unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != '\u2800' && r != '\U0001D159' &&
			!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if r != ' ' && !drawn {
			return false
		}
	}
	return true
}

// An UnconfirmedError says that the approval of something critical came without the right word. Nothing was decided.
type UnconfirmedError struct {
	Snapshot Snapshot
	Typed    string
}

func (e *UnconfirmedError) Error() string {
	word, _ := Confirmation(e.Snapshot.Ask.ApprovalRequested)
	return fmt.Sprintf("approvals: the risk is critical, so whoever approves it has to type %q", word)
}
