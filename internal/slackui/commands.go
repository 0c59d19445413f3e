package slackui

import (
	"context"

	"github.com/slack-go/slack"
)

// command takes in a slash command, in the socket's goroutine.
func (u *UI) command(ctx context.Context, c slack.SlashCommand, r *receipt) {
	u.socket.once("command "+c.Command, "a command that isn't known", "command", abridge(c.Command))
	r.ack()
}
