// Package approvals keeps the pending approvals: the asks that people have not answered yet.
//
// # Life of an approval
//
// [Registry.Open] puts the ask into memory, then records approval_requested. From the moment it returns, Resolve finds
// it: a click can't come too early. Surfaces follow the journal, show the ask, and report [Registry.Shown] or
// [Registry.Unshowable]. The first showing starts the clock: the deadline is that moment plus the timeout. Then people
// decide through [Registry.Resolve], or the deadline passes, or the waiter's context ends; whichever is recorded first
// in the journal is the resolution, and all others are told so. [Pending.Wait] returns it, and the ask leaves memory;
// who comes later is answered from the journal.
//
//	Open ── approval_requested ── Shown ── approval_shown ──┬─ Resolve ── approval_voted … approval_resolved (user)
//	            │                                           ├─ deadline ── approval_resolved (timeout)
//	            ├─ unshowable everywhere, or not shown in   └─ ctx ended ─ approval_resolved (abort)
//	            │  time, or nobody could approve
//	            └─ approval_resolved (undeliverable)
//
// Where an ask stands is decided when it is opened (places.go): where its run talks, in the approvals channel, and in direct
// messages to those who may approve, where too few of them are in these.
//
// # What is asked of it besides
//
// A grant (grants.go) is an answer that somebody gave before: "calls like this may start without asking". It is given with
// an approval, in one append with it, and used with a start, in one append with that. It ends by its time, its count,
// somebody's revoking it, or another definition of the tool or policy; then the call asks as any other. Who may give and
// revoke one is decided here, too (granting.go).
//
//	Open … approval_resolved + grant_given ── permission_decided (grant use 1) … (grant use n) ──┬─ its time, its count
//	                                                                                             └─ grant_revoked
//
// A pause (pause.go) is the operators' brake, from one event to the next: paused … resumed. It holds for everything, and
// what it forbids is recorded through [Registry.Unpaused], which no pause overtakes.
//
// An ask that was lost (its time ran out, or the process ended) may be asked again once (again.go), by whoever may start a
// run there. It is a new ask of a new run; nothing of the old one is taken over.
//
// # Invariants
//
//   - A pending approval is a promise of this process. If the process dies the answer is no: nothing here reads old asks
//     back; recovery resolves them as aborted.
//   - One resolution wins, and the journal's commit decides which. Every answer, to the winner and to the losers, is made
//     from the recorded resolution, never from what was asked.
//   - If a decision can't be recorded, nothing was decided: Resolve says so and the ask stays open. If the end of a wait
//     can't be recorded, the waiter gets a denial that says so ([Resolution.Recorded]), and nothing counts after it.
//   - Memory changes only by committed events, so it can be behind the journal, after a commit that seemed to fail, but
//     not ahead of it. A conflict brings the event that it lacks.
//   - After the deadline nothing counts, whether or not the waiter has woken up. In its very moment the journal decides.
//   - A person has one vote, and the last vote and the resolution are one append. Somebody who approved may still deny:
//     their denial is in the resolution.
//   - A decision is about one form of the arguments. [Registry.Amend] makes another form of them, and with it another
//     question: votes for the one before are void, and an approval of it counts for nothing.
//   - An approval of critical risk has to name what it is about ([Confirmation]).
//   - Who may decide is one function, [Registry.mayDecide]. Not knowing is a no.
//   - During a pause nothing is asked and nothing is approved, in the order of the journal ([Registry.Unpaused]).
//   - While nobody decides, people are reminded, and more of them may decide (clock.go), each step once and never after
//     the end. They may move the deadline (extend.go), as far as was settled when the ask was opened.
//   - A grant covers a call only if everything in it fits; what can't be found out fits nothing, and a grant whose giver
//     couldn't approve the call now covers nothing.
//   - Waiting holds no goroutine but the waiter's own, and after any ending no timer.
package approvals
