package slackui

import "time"

// Slack's limits, and how far below them we stay.
const (
	// A channel takes one message a second, and bursts of a few. The local Slack takes three at once. We use two of
	// them: the third is the room for messages that are under way longer or shorter than the ones before.
	postEvery = time.Second
	postBurst = 2

	// chat.update is a tier 3 method: 50 a minute for the whole workspace, whichever channel.
	updateEvery = 1200 * time.Millisecond
	updateBurst = 45
	// updateReserve is what updates of progress leave for the cards: people wait for those.
	updateReserve = 15

	// Looking for a message is conversations.replies, tier 3 too.
	findEvery = 1200 * time.Millisecond
	findBurst = 20

	// Opening a direct message is conversations.open, tier 3; each is opened once.
	openEvery = 1200 * time.Millisecond
	openBurst = 20

	// Private sentences are chat.postEphemeral, tier 4: 100 a minute. Somebody who clicks like mad gets no more.
	tellEvery = 600 * time.Millisecond
	tellBurst = 40

	// passingFor is how long a card doesn't say yet that its call was approved and is being performed. Most calls have ended
	// by then, and one update says it all: it comes sooner than as the second one, and costs half of the limit.
	passingFor = 100 * time.Millisecond

	// progressEvery is how often one progress message changes.
	progressEvery = 3 * time.Second
)

// A bucket counts calls against a limit: one every so often, and a burst after a while of silence. It keeps one time,
// at which all that was taken will have been earned.
type bucket struct {
	every time.Duration
	burst int
	earns time.Time
	shut  time.Time // Slack said to stop until then
}

// at is when there will be one call left over after reserve others.
func (b *bucket) at(now time.Time, reserve int) time.Time {
	free := b.earns.Add(-time.Duration(b.burst-1-reserve) * b.every)
	if free.Before(b.shut) {
		free = b.shut
	}
	if free.Before(now) {
		return now
	}
	return free
}

// take counts one call.
func (b *bucket) take(now time.Time) {
	if b.earns.Before(now) {
		b.earns = now
	}
	b.earns = b.earns.Add(b.every)
}

// stop obeys a "too many requests": nothing until the time that Slack names, and no burst after it.
func (b *bucket) stop(now time.Time, after time.Duration) {
	until := now.Add(after)
	if b.shut.Before(until) {
		b.shut = until
	}
	if full := b.shut.Add(time.Duration(b.burst-1) * b.every); b.earns.Before(full) {
		b.earns = full
	}
}

const (
	firstRetry   = time.Second
	longestRetry = 30 * time.Second
)

// retryAfter is how long the n-th failure in a row makes us wait.
func retryAfter(n int) time.Duration {
	if n > 5 {
		return longestRetry
	}
	return min(firstRetry<<max(n-1, 0), longestRetry)
}

// longestPatience is how long a message waits at most of which Slack keeps saying something that we don't understand.
const longestPatience = 10 * time.Minute

// patience is how long the n-th no in a row makes us wait, where we don't know whether it stays one.
func patience(n int) time.Duration {
	if n > 10 {
		return longestPatience
	}
	return min(firstRetry<<max(n-1, 0), longestPatience)
}
