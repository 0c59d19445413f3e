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

// operatorsLine is of those who may pause.
const operatorsLine = "operators"

// mentions are all places of the settings, the rules and the actions. A rule or action that names nobody means those of
// the setting, and may want more of them.
func (s *Settings) mentions(rules *policy.Rules, file *actions.File) []mention {
	all := []mention{
		{"approvers", "APPROVALBOT_APPROVERS", s.Approvers, approvals.ParseApprovers, s.Quorum},
		{"requesters", "APPROVALBOT_REQUESTERS", s.Requesters, approvals.ParseRequesters, 0},
	}
	if len(s.Grantors) > 0 {
		all = append(all, mention{"grantors", "APPROVALBOT_GRANTORS", s.Grantors, approvals.ParseApprovers, 0})
	}
	if len(s.Operators) > 0 {
		all = append(all, mention{operatorsLine, "APPROVALBOT_OPERATORS", s.Operators, approvals.ParseApprovers, 1})
	}
	ids := slices.DeleteFunc(slices.Clone(s.Notify), func(n string) bool { return !personID.MatchString(n) }) // else it is a word
	if len(ids) > 0 {
		all = append(all, mention{"notify", "APPROVALBOT_NOTIFY", ids, approvals.ParseApprovers, 0})
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
		wrong := approvals.Check(ctx, client.Directory(), client.Team, list, m.quorum)
		if m.what == operatorsLine {
			wrong = nobodyPauses(wrong, len(m.list))
		}
		for _, err := range wrong {
			found = append(found, finding{m.what, m.where + ": " + err.Error()})
		}
	}
	found = append(found, s.lostBots(ctx, client)...)
	found = append(found, s.lostProfiles(ctx, client)...)
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

// nobodyPauses says of the operators what it means where none of them counts.
func nobodyPauses(wrong []error, listed int) []error {
	nobody := func(err error) bool { return errors.Is(err, approvals.ErrNobody) }
	if len(wrong) < listed && !slices.ContainsFunc(wrong, nobody) {
		return wrong
	}
	return append(slices.DeleteFunc(wrong, nobody), errors.New("so nobody can pause approvalbot in Slack: only full members of the workspace count"))
}

// lostBots looks up the bots that may start runs.
func (s *Settings) lostBots(ctx context.Context, client *slackui.Client) (found []finding) {
	for _, id := range s.TrustedBots {
		if err := client.CheckBot(ctx, id); err != nil {
			found = append(found, finding{"bots", "APPROVALBOT_TRUSTED_BOTS: " + err.Error()})
		}
	}
	return found
}

// lostProfiles looks up the channels that profiles name.
func (s *Settings) lostProfiles(ctx context.Context, client *slackui.Client) (found []finding) {
	f, err := s.profileFile()
	if err != nil || f == nil {
		return nil // it is said where the file is read
	}
	for _, p := range f.All() {
		for _, id := range p.Channels {
			if err := checkChannel(ctx, client, id); err != nil {
				found = append(found, finding{"profile " + p.Name, fmt.Sprintf("APPROVALBOT_PROFILES: the profile %s: %v", p.Name, err)})
			}
		}
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
		if len(m.list) > 0 && !wrong[m.what] && !strings.Contains(m.where, " ") { // rules and actions have lines of their own
			d.check(m.what, strings.Join(m.list, ","), nil)
		}
	}
	if len(s.TrustedBots) > 0 && !wrong["bots"] {
		d.check("bots", strings.Join(s.TrustedBots, ","), nil)
	}
	if len(s.Operators) == 0 {
		d.tell(operatorsLine, "none: nobody can pause it in Slack (APPROVALBOT_OPERATORS); approvalbot pause on this machine can")
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
