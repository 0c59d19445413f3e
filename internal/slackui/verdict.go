package slackui

import (
	"errors"
	"slices"
	"time"

	"github.com/slack-go/slack"
)

// A verdict is what an answer of Slack, or the lack of one, means for a message.
type verdict string

const (
	confirmed verdict = "confirmed" // it stands there
	limited   verdict = "limited"   // too many requests: later
	failed    verdict = "failed"    // it certainly didn't happen: try again
	unsure    verdict = "unsure"    // it may have happened
	malformed verdict = "malformed" // Slack doesn't take these blocks
	absent    verdict = "absent"    // what it is about doesn't exist any more, or takes nothing any more
	frozen    verdict = "frozen"    // the message stands there and can't be edited any more
	refused   verdict = "refused"   // nothing can be posted there; what is there already is another matter
	puzzling  verdict = "puzzling"  // a no of which we don't know whether it stays one
	locked    verdict = "locked"    // our token is refused
)

// An answer is a verdict with what belongs to it.
type answer struct {
	verdict verdict
	code    string        // Slack's word
	after   time.Duration // of limited: what Slack asked for
	err     error
}

// errUnanswered: Slack answered with something that confirms nothing: no error and no message.
var errUnanswered = errors.New("an answer that confirms nothing")

// Only what is certain is in these lists. A code that is in none may be new, or pass when an administrator has had a look:
// it never ends a message.
//
// transient are the codes of failures that pass. Slack says of the second group that the call may have taken effect.
var (
	transient = []string{
		"ratelimited", "rate_limited", "message_limit_exceeded", "external_channel_migrating", "streaming_state_conflict",
		"accesslimited", "team_added_to_org", "update_failed",
	}
	doubtful  = []string{"internal_error", "fatal_error", "request_timeout", "service_unavailable", "timeout", "posting_to_channel_failed", "messaging_processing_failed"}
	tooMuch   = []string{"ratelimited", "rate_limited", "message_limit_exceeded"}
	badBlocks = []string{"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_blocks_too_many", "block_mismatch", "msg_too_long", "no_text"}
	nothing   = []string{"message_not_found", "channel_not_found", "is_archived"}
	fixed     = []string{"cant_update_message", "edit_window_closed"}
	closed    = []string{
		"not_in_channel", "restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel",
		"restricted_action_non_threadable_channel", "restricted_action_thread_locked", "thread_locked",
		"messages_tab_disabled", "cannot_reply_to_message", "missing_scope",
	}
	badToken = []string{"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"}
)

// judge reads the error of a call that posts, updates or looks for a message.
func judge(err error) answer {
	if err == nil {
		return answer{verdict: confirmed}
	}
	if e, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return answer{verdict: limited, code: "ratelimited", after: e.RetryAfter, err: err}
	}
	code := errorCode(err)
	a := answer{verdict: puzzling, code: code, err: err}
	switch {
	case code == "":
		// No connection, a time limit, a 5xx, a page of a proxy: there is no telling how far the call came.
		a.verdict, a.code = unsure, "no_answer"
	case slices.Contains(tooMuch, code):
		a.verdict = limited
	case slices.Contains(doubtful, code):
		a.verdict = unsure
	case slices.Contains(transient, code):
		a.verdict = failed
	case slices.Contains(badBlocks, code):
		a.verdict = malformed
	case slices.Contains(nothing, code):
		a.verdict = absent
	case slices.Contains(fixed, code):
		a.verdict = frozen
	case slices.Contains(closed, code):
		a.verdict = refused
	case slices.Contains(badToken, code):
		a.verdict = locked
	}
	return a
}
