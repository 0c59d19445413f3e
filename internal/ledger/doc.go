// Package ledger is the journal: one append-only list of events, and the readings of it that others share.
//
// # Life of an event
//
// A caller builds an [Event] with a [Body] and passes it to [Ledger.Append]. When Append returns nil the event is on
// disk, has its Seq, Time and Hash, and will never change. Only then may its effect happen: a card is shown, a tool is
// started, an answer is sent. Everything that approvalbot knows is a reading of these events: the stored record is the
// rows, the model's transcript and [Run] are folds over them, the surfaces in Slack follow them with [Ledger.Follow],
// and the audit reads them and checks their chain with [Ledger.Verify].
//
// # Once
//
// Some things may happen once only: a message starts one run, an approval is resolved once, a call starts once. Such an
// event makes claims ([Body.Claims]): rows of a unique index. The first append that makes a claim wins; every later one
// fails with a [*ConflictError] that carries the winning event, and leaves nothing behind. So two parties that race
// need no lock between them: the journal's commit decides, and the loser learns who won.
//
//	message_received     (origin, slack, team, channel, ts) or (origin, http, token, idempotency key); none without a key
//	run_started          (run, run), (message taken, seq of the message) if it works one off
//	run_finished         (run end, run)
//	session_compacted    (compacted, session, seq of the last event that counted)
//	message_withdrawn    (message taken, seq of the message): nothing can start it then
//	file_saved           (file, seq of the message, file id)
//	permission_decided   (decision, run, call); by a grant also (grant use, grant, n)
//	approval_requested   (ask, run, call), (approval, approval)
//	approval_shown       (shown, approval, channel, ts)
//	approval_amended     (amended, approval, revision)
//	approval_extended    (extended, approval, n)
//	approval_reminded    (reminded, approval, n)
//	approval_escalated   (escalated, approval, level)
//	approval_asked_again (asked again, approval)
//	approval_voted       (vote, approval, team, user or token), of changed arguments with their revision
//	approval_resolved    (resolution, approval)
//	tool_started         (start, run, call)
//	tool_finished        (finish, run, call); of a call that was denied also (start, run, call)
//	message_posted       (posted, thing kind, thing id, channel, ts)
//	message_settled      (settled, thing kind, thing id, channel, ts); the last one of a run also (run settled, run)
//	policy_changed       none
//	tool_defined         none: a definition may come back
//	grant_given          (grant, grant)
//	grant_revoked        (grant end, grant)
//	paused, resumed      none
//	pruned               none
//
// A call that was denied has taken its start, so it can't start; one that started has taken it, so it can't be denied.
//
// Claims also close what is open ([Awaiter]): a message waits until a run takes it or it is withdrawn, a run is open until
// its end and until the last of its messages in Slack is settled. The latter also holds for a run without a place in Slack
// from the moment that one of its asks stands elsewhere (approval_requested, approval_escalated). The journal keeps a list of what is open beside the claims, so that a
// restart doesn't read all of it to find what to recover.
//
// # Appending
//
// One goroutine owns the writing connection. Concurrent appends share one transaction, a savepoint each: all or none of
// an append's events are written, and nobody is answered, conflicts included, before the commit is durable. Only a
// failed claim rolls back to its savepoint. After any other error the connection is not used again: SQLite may have
// undone more than the failed statement. The tail is read from disk first, and the callers are answered from what is
// there: an append whose commit reported an error but took place is a success.
//
// If nothing can be written, Append fails with an error that is [ErrNotRecorded] and its effect must not happen. Where
// the file couldn't even be read again, such an append may be there later; whoever repeats it loses to it then, and
// recovery ends what it left open. [Ledger.Health] says why the last write failed, [Ledger.WaitWritable] waits until one
// works again.
//
// # The chain
//
// Every row's hash covers the hash before it, the row's columns and the SHA-256 of its body, so a changed, inserted or
// removed row breaks the chain from there on, and a body can be erased later without breaking it. A cut tail shows only
// against a head that is known elsewhere. [Reader.Verify] computes all of it again, and the claims, and whether each event
// could happen where it stands.
//
// # Erasing
//
// [Prune] erases the bodies of old runs: what was said and done. That there was an event, of which kind, when and by whom
// stays, the chain holds, and so do the claims: nothing that happened once can happen again. What was erased, by whom and
// when is an event itself ([Pruned]), and Verify finds every body that is missing without one.
//
// Nothing outside this package knows SQL.
package ledger
