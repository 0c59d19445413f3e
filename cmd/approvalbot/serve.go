package main

import (
	"context"
	"net"
	"os"

	"approvalbot/internal/redact"
	"approvalbot/internal/tools/confine"
)

type serveCmd struct{}

// Help explains the settings; kong shows it under serve --help.
func (serveCmd) Help() string {
	return "Settings come from the environment, and from a file .env in the current directory. Four have no default: " +
		"SLACK_BOT_TOKEN, SLACK_APP_TOKEN, APPROVALBOT_APPROVERS and APPROVALBOT_MODEL.\n\n" + settingsHelp(nil) +
		"\nConnect a workspace in five minutes: approvalbot manifest --url"
}

func (serveCmd) Run(ctx context.Context) error {
	if err := confine.Harden(); err != nil {
		return err
	}
	s, err := serveSettings()
	r := redact.New(s.secrets()...)
	log := newLogger(s.LogLevel, r, os.Stderr, true)
	warn(log, warnings(os.Environ())) // also when it doesn't start: a wrong name may be the reason
	if err != nil {
		return err
	}
	ln, err := listenAPI(&s)
	if err != nil {
		return err
	}
	defer ln.Close()
	a, err := newApp(ctx, s, wiring{log: log, redactor: r, hangups: hangups(), own: []net.Addr{ln.Addr()}, control: listenControl})
	if err != nil {
		return err
	}
	log.Info("approvalbot starts", "version", version(), "model", a.modelName, "model_from", "APPROVALBOT_MODEL",
		"approvers", s.Approvers, "approval_policy", s.ApprovalPolicy, "sandbox", s.Sandbox, "timeout", s.Timeout.String(),
		"workspace", a.builtin.Dir(), "api", "http://"+ln.Addr().String())
	a.sayShell()
	return a.run(ctx, ln)
}
