package slackui

// refusal is the private sentence, in mrkdwn, for a person whose click had no
// effect.
func refusal(err error) string { return "Nothing was changed." }
