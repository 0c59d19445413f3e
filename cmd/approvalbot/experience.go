package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"approvalbot/internal/approvals"
)

// part is a part of a whole, in percent, as a setting.
type part int

// UnmarshalText reads a number with or without its sign.
func (p *part) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(text)), "%"))
	if err != nil || n < 0 || n > 99 {
		return fmt.Errorf("%q has to be a part in percent, from 0%% to 99%%", text)
	}
	*p = part(n)
	return nil
}

var (
	botID    = regexp.MustCompile(`^B[A-Z0-9]{1,30}$`)
	personID = regexp.MustCompile(`^[UWS][A-Z0-9]{1,30}$`) // a person or a user group
)

// checkExperience names what is wrong with the settings of what people see and may do in Slack.
func (s *Settings) checkExperience() (wrong []error) {
	bad := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	for _, b := range s.TrustedBots {
		bad(!botID.MatchString(b), "APPROVALBOT_TRUSTED_BOTS: %q is not a bot id; it begins with B, and the log names it when such a bot mentions approvalbot", b)
	}
	for _, o := range s.Operators {
		bad(!personID.MatchString(o), "APPROVALBOT_OPERATORS: %q is neither a user id (U…) nor a user group id (S…)", o)
	}
	for _, n := range s.Notify {
		word := n == "approvers" || n == "none"
		bad(!word && !personID.MatchString(n), "APPROVALBOT_NOTIFY: %q is neither approvers, none, a user id (U…) nor a user group id (S…)", n)
		bad(n == "none" && len(s.Notify) > 1, "APPROVALBOT_NOTIFY: none stands alone")
	}
	bad(s.MoreTime < 0, "APPROVALBOT_MORE_TIME=%s: it can't be negative", s.MoreTime)
	bad(s.ApprovalsChannel != "" && !channelID.MatchString(s.ApprovalsChannel), "APPROVALBOT_APPROVALS_CHANNEL=%q is not a channel id; Slack shows it (C…) at the end of a channel's details", s.ApprovalsChannel)
	bad(bool(s.OnlyThere) && s.ApprovalsChannel == "", "APPROVALBOT_APPROVALS_ONLY_THERE=on needs APPROVALBOT_APPROVALS_CHANNEL")
	bad(s.Grants != "thread" && s.Grants != "always", "APPROVALBOT_GRANTS=%q: it has to be thread or always", s.Grants)
	if len(s.Grantors) > 0 {
		if _, err := approvals.ParseApprovers(s.Grantors); err != nil {
			wrong = append(wrong, listError("APPROVALBOT_GRANTORS", err))
		}
	}
	return wrong
}
