package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/slackui"
	"approvalbot/internal/tools/actions"
)

// A mention is a place where people are named by their ids, and how many of them it takes.
type mention struct {
	what   string // approvers, requesters, policy, actions: a line of doctor
	where  string // in words, for the place itself
	list   []string
	read   func([]string) (approvals.Approvers, error)
	quorum int // 0: it isn't about approving
}

// mentions are all places of the settings, the rules and the actions. A rule or action that names nobody means those of
// the setting, and may want more of them.
func (s *Settings) mentions(rules *policy.Rules, file *actions.File) []mention {
	all := []mention{
		{"approvers", "APPROVALBOT_APPROVERS", s.Approvers, approvals.ParseApprovers, s.Quorum},
		{"requesters", "APPROVALBOT_REQUESTERS", s.Requesters, approvals.ParseRequesters, 0},
	}
	if len(s.Grantors) > 0 {
		all = append(all, mention{"approvers", "APPROVALBOT_GRANTORS", s.Grantors, approvals.ParseApprovers, 0})
	}
	further := func(what, where string, list []string, quorum int) {
		if list == nil && quorum <= s.Quorum {
			return // as the setting has it
		}
		if list == nil {
			list, where = s.Approvers, where+", for whom APPROVALBOT_APPROVERS counts"
		}
		all = append(all, mention{what, where, list, approvals.ParseApprovers, max(quorum, s.Quorum)})
	}
	for _, r := range rules.List() {
		if r.Effect == policy.Ask {
			where := fmt.Sprintf("%s:%d: the rule %s", s.PolicyFile, r.Line, r.Name)
			further("policy", where, r.Approvers, r.Quorum)
			for _, step := range r.Escalate {
				all = append(all, mention{"policy", where + ", escalate", step.Approvers, approvals.ParseApprovers, 1})
			}
		}
	}
	for _, a := range file.Actions() {
		d := a.Demands()
		further("actions", "the action "+a.Name(), d.Approvers, d.Quorum)
	}
	return all
}

// A finding is something that is wrong with a place where people or channels are named.
type finding struct {
	what string // as of a [mention]
	text string
}

// strangers looks up everyone who is named, and every channel, and tells who isn't there or doesn't count.
func (s *Settings) strangers(ctx context.Context, client *slackui.Client, all []mention) (found []finding) {
	for _, m := range all {
		list, err := m.read(m.list)
		if err != nil {
			continue // it is said where the list is read
		}
		for _, err := range approvals.Check(ctx, client.Directory(), client.Team, list, m.quorum) {
			found = append(found, finding{m.what, m.where + ": " + err.Error()})
		}
	}
	for _, id := range s.Channels {
		if err := checkChannel(ctx, client, id); err != nil {
			found = append(found, finding{"channels", "APPROVALBOT_CHANNELS: " + err.Error()})
		}
	}
	if s.ApprovalsChannel == "" {
		return found
	}
	if err := checkChannel(ctx, client, s.ApprovalsChannel); err != nil {
		without := "cards stand in their threads only"
		if s.OnlyThere {
			without += ", with their buttons"
		}
		found = append(found, finding{"approvals channel", fmt.Sprintf("APPROVALBOT_APPROVALS_CHANNEL: %v. Until then %s", err, without)})
	}
	return found
}

// checkChannel tells why nobody could write to the bot in a channel.
func checkChannel(ctx context.Context, client *slackui.Client, id string) error {
	info, err := client.Directory().Channel(ctx, id)
	switch {
	case errors.Is(err, approvals.ErrNoSuch):
		return fmt.Errorf("there is no channel with the id %s, or it is private and the bot is not in it: /invite @%s; Slack shows the id at the end of a channel's details", id, client.BotName)
	case err != nil:
		return fmt.Errorf("%s can't be looked up: %w", id, err)
	case info.Archived:
		return fmt.Errorf("#%s (%s) is archived", info.Name, id)
	}
	in, err := client.Directory().Member(ctx, id, client.BotUser)
	switch {
	case err != nil:
		return fmt.Errorf("%s can't be looked up: %w", id, err)
	case !in:
		return fmt.Errorf("the bot is not in #%s (%s): /invite @%s", info.Name, id, client.BotName)
	}
	return nil
}

// A rollCall warns in the log of everyone who is named and doesn't count: at the start, and whenever the rules were read
// again. It is the only one that does, and nothing waits for it.
type rollCall struct {
	settings Settings
	client   *slackui.Client
	rules    *rulebook
	actions  *actions.File
	log      *slog.Logger
}

// rollCallLimit bounds the look-ups of one time.
const rollCallLimit = time.Minute

// run works until ctx ends.
func (c *rollCall) run(ctx context.Context) {
	for {
		c.once(ctx)
		select {
		case <-c.rules.reread:
		case <-ctx.Done():
			return
		}
	}
}

func (c *rollCall) once(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, rollCallLimit)
	defer cancel()
	found := c.settings.strangers(limited, c.client, c.settings.mentions(c.rules.Current().Rules(), c.actions))
	if ctx.Err() != nil {
		return // what was found last is that the process ends
	}
	for _, f := range found {
		c.log.Warn(f.text)
	}
}

// people looks up everyone who is named: an id with a typing error would otherwise show only when it is needed.
func (d *diagnosis) people(ctx context.Context, s Settings, client *slackui.Client) {
	var rules *policy.Rules
	if s.PolicyFile != "" {
		if f, _, err := readPolicyFile(s.PolicyFile); err == nil { // else it is said with the policy
			rules = f.Rules
		}
	}
	file, err := s.actionFile()
	if err != nil {
		file = &actions.File{}
	}
	all := s.mentions(rules, file)
	wrong := map[string]bool{}
	for _, f := range s.strangers(ctx, client, all) {
		wrong[f.what] = true
		d.check(f.what, "", errors.New(f.text))
	}
	for _, m := range all {
		if len(m.list) > 0 && !wrong[m.what] && (m.what == "approvers" || m.what == "requesters") {
			d.check(m.what, strings.Join(m.list, ","), nil)
		}
	}
	if len(s.Channels) > 0 && !wrong["channels"] {
		d.check("channels", strings.Join(s.Channels, ",")+": the bot is in them", nil)
	}
	if s.ApprovalsChannel != "" && !wrong["approvals channel"] {
		d.check("approvals channel", s.ApprovalsChannel+": the bot is in it", nil)
	}
}

// foresee tells what would become of a request in a channel, with what to do where nobody could approve it.
func (s *Settings) foresee(ctx context.Context, client *slackui.Client, channel string) (approvals.Forecast, error) {
	deciders, err := s.approvals(client.Team)
	if err != nil {
		return approvals.Forecast{}, err
	}
	r := approvals.New(nil, client.Directory(), deciders, slog.New(slog.DiscardHandler))
	f := r.Foresee(ctx, ledger.Place{Team: client.Team, Channel: channel})
	if f.Hopeless == "" {
		return f, nil
	}
	err = fmt.Errorf("a request there is denied at once, because nobody could be asked: %s", f.Hopeless)
	if slices.Contains(s.Approvers, "channel") && !slices.Contains(f.Approvers, "channel") {
		err = fmt.Errorf("%w. Either set APPROVALBOT_CHANNELS=%s (then the bot listens only in the channels of that list), or name people (U…) or user groups (S…) in APPROVALBOT_APPROVERS", err, channel)
	}
	return f, err
}

// places says in which public channels that the bot is in nobody could approve anything.
func (d *diagnosis) places(ctx context.Context, s Settings, client *slackui.Client) {
	if len(s.Channels) > 0 || !slices.Contains(s.Approvers, "channel") {
		return // it listens only where "channel" counts, or doesn't depend on it
	}
	channels, err := client.PublicChannels(ctx)
	if err != nil {
		d.note("channels", "the public ones that the bot is in can't be listed: "+err.Error())
		return
	}
	for _, c := range channels {
		if _, err := s.foresee(ctx, client, c.ID); err != nil {
			d.note("channels", fmt.Sprintf("the bot is in #%s (%s): %s", c.Name, c.ID, err))
		}
	}
}

// testCard posts a card as a request in that channel would have it. Where a request would be denied at once, the card
// says so, and the check fails.
func (d *diagnosis) testCard(ctx context.Context, s Settings, client *slackui.Client, channel string) {
	f, hopeless := s.foresee(ctx, client, channel)
	err := client.SendTest(ctx, channel, slackui.Test{Approvers: f.Approvers, Quorum: s.Quorum, Timeout: s.Timeout, Hopeless: f.Hopeless, Language: s.Language})
	if err == nil && hopeless != nil {
		err = fmt.Errorf("posted to %s, where %w", channel, hopeless)
	}
	d.check("test card", "posted to "+channel, err)
}
