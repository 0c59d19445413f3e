package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"approvalbot/internal/approvals"
	"approvalbot/internal/ledger"
	"approvalbot/internal/policy"
	"approvalbot/internal/tools"
)

// A rulebook is the policy of the process: the two settings, and the rules of the policy file, which are read again when
// the process is told to. What takes its place is recorded first; what can't be read, or recorded, takes nobody's place.
type rulebook struct {
	policy.Live
	file    string         // "": there is none
	base    *policy.Policy // the settings, without rules
	text    string         // of the file, as it was read
	journal *ledger.Ledger
	log     *slog.Logger
	reread  chan struct{}     // has one when the file was read again
	tools   func() *tools.Set // that there are now; nil: not known
}

// openRulebook reads the policy file, if there is one. A wrong file doesn't let the process start.
func openRulebook(s Settings, log *slog.Logger) (*rulebook, error) {
	base, err := policy.New(s.ApprovalPolicy, s.Sandbox)
	if err != nil {
		return nil, err
	}
	base = s.withReadOnlyCommands(base)
	b := &rulebook{file: s.PolicyFile, base: base, log: log, reread: make(chan struct{}, 1)}
	b.Set(base)
	if b.file == "" {
		return b, nil
	}
	file, text, err := readPolicyFile(b.file)
	if err != nil {
		return nil, fromSetting(err)
	}
	b.text = text
	b.Set(base.With(file.Rules))
	return b, nil
}

// begin records what is in force, where it isn't what the journal says was in force last: with a file or without one, since
// what was allowed in advance under one policy must not come back after another one.
func (b *rulebook) begin(ctx context.Context, journal *ledger.Ledger) error {
	b.journal = journal
	last, err := lastPolicy(ctx, journal.Reader)
	if err != nil {
		return fmt.Errorf("which policy was in force last can't be read: %w", err)
	}
	p := b.Current()
	if last != p.Hash() {
		if _, err := journal.Append(ctx, b.changed(last, p, b.text, ledger.System)); err != nil {
			return fmt.Errorf("the policy could not be recorded: %w", err)
		}
	}
	if b.file == "" {
		return nil
	}
	b.log.Info("policy file", "file", b.file, "rules", p.Rules().Len(), "hash", p.Hash())
	warn(b.log, withoutEffect(p))
	return nil
}

// lastPolicy is the hash of the policy that was in force last, as far as the journal says; "" where it doesn't.
func lastPolicy(ctx context.Context, journal *ledger.Reader) (hash string, err error) {
	for e, err := range journal.Read(ctx, 0, ledger.Filter{Kinds: []string{"policy_changed"}}) {
		if err != nil {
			return "", err
		}
		hash = "" // erased: what it was nobody knows
		if b, ok := e.Body.(*ledger.PolicyChanged); ok {
			hash = b.To
		}
	}
	return hash, nil
}

func (b *rulebook) changed(from string, to *policy.Policy, text string, by ledger.Actor) ledger.Event {
	s := to.Settings()
	return ledger.Event{Actor: by, Body: &ledger.PolicyChanged{
		From: from, To: to.Hash(), Policy: string(s.ApprovalPolicy), Sandbox: string(s.SandboxMode),
		File: b.file, Rules: to.Rules().Len(), Text: text,
	}}
}

// hangup is who sends SIGHUP: somebody on this machine; nobody knows who.
var hangup = ledger.Actor{Kind: ledger.ActorOperator, Via: "SIGHUP"}

// hangups are the signals that tell the process to read the policy file again. A process that doesn't ask for them is ended
// by one, as by the end of its terminal.
func hangups() <-chan os.Signal {
	c := make(chan os.Signal, 1) // one that waits is enough: it is read after it came
	signal.Notify(c, syscall.SIGHUP)
	return c
}

// obey reads the file again whenever it is told to, until ctx ends. It is the only one that does.
func (b *rulebook) obey(ctx context.Context, again <-chan os.Signal) {
	for {
		select {
		case <-again:
			if err := b.reload(ctx); err != nil {
				b.log.Error("nothing was taken over; the policy from before stays in force", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// reload puts what the file says now in force, from the next decision on. Calls that wait for people are judged by it
// before they start.
func (b *rulebook) reload(ctx context.Context) error {
	if b.file == "" {
		return errors.New("there is no policy file: APPROVALBOT_POLICY_FILE isn't set")
	}
	file, text, err := readPolicyFile(b.file)
	if err != nil {
		return fromSetting(err)
	}
	defer b.tell()
	old, p := b.Current(), b.base.With(file.Rules)
	if p.Hash() == old.Hash() {
		b.log.Info("the policy file says what it said before", "file", b.file, "hash", p.Hash())
		return nil
	}
	if _, err := b.journal.Append(ctx, b.changed(old.Hash(), p, text, hangup)); err != nil {
		return fmt.Errorf("it could not be recorded: %w", err)
	}
	b.Set(p)
	b.log.Info("another policy is in force", "file", b.file, "rules", p.Rules().Len(), "hash", p.Hash(), "before", old.Hash())
	warn(b.log, withoutEffect(p))
	b.sayUnfit()
	return nil
}

// tell says that the file was read again, to whoever looks at what it names.
func (b *rulebook) tell() {
	select {
	case b.reread <- struct{}{}:
	default: // one that waits is enough: it is looked at after it came
	}
}

// sayUnfit logs which rules are about none of the tools that there are.
func (b *rulebook) sayUnfit() {
	if b.tools == nil {
		return
	}
	set := b.tools()
	for _, r := range b.Current().Rules().List() {
		if !aboutAny(set, r) {
			b.log.Warn("a rule is about none of the tools that there are now", "rule", r.Name, "line", r.Line, "tool", strings.Join(r.Tools, " "))
		}
	}
}

// maxPolicyFile is more than [policy.Load] takes; it keeps a wrong path from filling the memory.
const maxPolicyFile = 2 << 20

var errNoPolicyFile = errors.New("doesn't exist")

// fromSetting names the setting that an error about the policy file comes from, where the file's name alone doesn't help.
func fromSetting(err error) error {
	if errors.Is(err, errNoPolicyFile) {
		return fmt.Errorf("%w (APPROVALBOT_POLICY_FILE)", err)
	}
	return err
}

// readPolicyFile reads and checks a policy file. Whoever can write it decides what the bot may do, so it is refused where
// anybody can.
func readPolicyFile(path string) (*policy.File, string, error) {
	wrong := func(err error) error { return fmt.Errorf("the policy file %s: %w", path, err) }
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold the process up
	if errors.Is(err, os.ErrNotExist) {
		return nil, "", fmt.Errorf("the policy file %s %w", path, errNoPolicyFile)
	}
	if err != nil {
		return nil, "", wrong(errors.Unwrap(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, "", wrong(err)
	case !info.Mode().IsRegular():
		return nil, "", wrong(errors.New("it is not a regular file"))
	case info.Mode().Perm()&0o002 != 0:
		return nil, "", wrong(fmt.Errorf("everybody on this machine can write it (mode %04o), and it decides what the bot may do: chmod o-w %s", info.Mode().Perm(), path))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPolicyFile))
	if err != nil {
		return nil, "", wrong(err)
	}
	file, err := policy.Load(path, text)
	if err != nil {
		return nil, "", err
	}
	for _, r := range file.Rules.List() {
		if r.Approvers == nil {
			continue
		}
		if _, err := approvals.ParseApprovers(r.Approvers); err != nil {
			return nil, "", listError(fmt.Sprintf("%s:%d: the approvers of the rule %s", path, r.Line, r.Name), err)
		}
	}
	return file, string(text), nil
}

// withoutEffect says which rules can't do what they seem to say under the settings.
func withoutEffect(p *policy.Policy) (out []string) {
	var allows []string
	for _, r := range p.Rules().List() {
		if r.Effect == policy.Allow {
			allows = append(allows, r.Name)
		}
	}
	if len(allows) > 0 && p.Settings().ApprovalPolicy == policy.Strict {
		out = append(out, fmt.Sprintf("under the approval policy strict people are asked about every call, so these rules that allow have no effect: %s", strings.Join(allows, ", ")))
	}
	return out
}
