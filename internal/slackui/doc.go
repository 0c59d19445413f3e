// Package slackui is approvalbot in Slack: what people write and click goes in, cards, progress and answers go out.
//
// # In
//
// One Socket Mode connection delivers envelopes, and one goroutine reads them (socket.go) that never waits: work goes
// into lanes (lanes.go), one for each conversation, and one for each ask and person, so that a thread keeps its order and
// a slow look-up of one person holds up nobody else. What follows from a click or message besides its effect, such as a
// private sentence, has lanes of its own (replies.go): no decision waits for what somebody is told. Every envelope is
// acknowledged, also those that nobody understands. A message is handed to the agent, which journals it before the
// acknowledgement; what can't be journalled isn't acknowledged, and Slack delivers it again. A click is handed to the approvals, and acknowledged when its decision is committed or after 2.5 seconds,
// whichever is first. Nothing that an envelope says about an ask is believed but the approvalId in the button: team, app,
// channel, thread, author, block and message must fit what the journal says of it (click.go).
//
// What follows a click, a form, a shortcut or a command is looked up in tables (interactions.go, commands.go). A form is
// about one revision of its ask (asking.go): words of a denial (deny.go), the name that critical risk takes (confirm.go),
// other arguments (edit.go), what is allowed in advance (grants.go). A form that doesn't open decides nothing, and says so.
// A message while something waits may be an answer to it (offers.go), and a word may stop a run (stopword.go).
//
// Connections that Slack ends soon after they open wait longer and longer (gate.go); an outage, in which none can be opened,
// is told apart from that, so that readiness says what is wrong and is green soon after.
//
// # Out
//
// Every message of ours is a [ledger.Thing]: the card of an ask, the progress of a run, its answer. Its wanted state is
// a pure function of the journal (card.go, progress.go, answer.go: events in, blocks out); its confirmed state is what
// Slack last said yes to. The outbox brings the second to the first, one message after the other, within Slack's limits,
// and keeps at it over errors and restarts. It never reads Slack to learn what we want, only to find a message whose
// post was never answered.
//
//	journal ── fold ── wanted ──┐
//	                            outbox ── chat.postMessage / chat.update ── message_posted, message_settled ── journal
//	           confirmed ───────┘
//
// An ask may stand in several messages (in its thread, in the approvals channel, in direct messages), and a message may
// carry several asks of one round (carry.go, elsewhere.go, set.go). Each of them is shown, clicked and ended by itself; an
// ask can't be shown when none of them is left. While nobody answers, nudges lead people to the card (nudge.go); when it is
// over they are one line. A pause is a notice in every channel that it concerns, until it is resumed (notices.go).
//
// What is no thing, since nobody needs it when it is late: a person's Home tab and the answer to a command, which are
// computed from the same reading of the journal for one person and from what they may see (overview.go, home.go,
// homeview.go, commands.go); and signs of life, such as eyes on a message (signs.go).
//
// A no of Slack's ends a message only where it is certain to stay (verdict.go): the message or channel doesn't exist any
// more. Any other code is tried again, ever more rarely, by the next process too, because a card that keeps its buttons
// lies. Where a message can't be edited any more, its last state is posted as a new one, once.
//
// # Invariants
//
//   - A card is rendered from the journal, never from the payload of a click. A terminal card has no buttons and a
//     pending rendering never follows a terminal one.
//   - A thing has at most one call under way, and is rendered when it is sent.
//   - What is posted is recorded as message_posted (of a card, approval_shown first: it starts the clock); what stands in
//     its last state, or is gone, as message_settled. The last one of a run lets the run be forgotten.
//   - What is shown to approve is complete, or there is no Approve there.
//   - Text that others wrote (arguments, model, tools, names) goes only into rich_text and plain_text elements, every
//     character that can't be seen made visible, every secret replaced by its length.
//     Our own words alone go into mrkdwn and into titles. Secrets are hidden before anything is shortened, and what is
//     one in a request is one in everything that is said about it.
//   - Every rendering fits Slack's limits, whatever stands in the journal (fit, weight); the same events always give the
//     same bytes, so its hash can be checked years later.
//   - This is the only package that knows slack-go.
package slackui
