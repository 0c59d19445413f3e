package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"approvalbot/internal/slackui"
	"approvalbot/internal/tools"
)

// The values of APPROVALBOT_HTTP.
const (
	httpOn  = "on"
	httpOff = "off"
)

// toolOptions say what the built-in tools may do. The messenger may be nil; own are the addresses that this process
// listens on.
func (s *Settings) toolOptions(m tools.Messenger, own ...net.Addr) tools.Options {
	o := tools.Options{
		Language:  s.Language,
		Workspace: s.Workspace, Protected: s.protected(), Messenger: m,
		Shell: s.Shell, ShellRead: s.ShellRead, ShellWrite: s.ShellWrite, ShellNetwork: bool(s.ShellNetwork),
	}
	if s.HTTP != httpOff {
		o.HTTP = &tools.HTTPOptions{Allow: s.HTTPAllow, Own: s.ownAddrs(own)}
	}
	return o
}

// ownAddrs are the addresses at which a tool could approve itself: those of this process, and a local Slack's.
func (s *Settings) ownAddrs(listening []net.Addr) (all []netip.AddrPort) {
	candidates := []string{s.APIAddr}
	for _, a := range listening {
		candidates = append(candidates, a.String())
	}
	if u, err := url.Parse(s.APIURL); err == nil {
		candidates = append(candidates, u.Host)
	}
	for _, c := range candidates {
		host, port, err := net.SplitHostPort(c)
		switch {
		case err != nil:
			continue
		case host == "": // every address of this machine
			host = "0.0.0.0"
		case host == "localhost":
			host = "127.0.0.1"
		}
		if a, err := netip.ParseAddrPort(net.JoinHostPort(host, port)); err == nil && a.Port() != 0 {
			all = append(all, a)
		}
	}
	return all
}

// checkHTTP says what is wrong with the settings of http_request.
func (s *Settings) checkHTTP() (wrong []error) {
	if s.HTTP != "" && s.HTTP != httpOn && s.HTTP != httpOff {
		wrong = append(wrong, fmt.Errorf("APPROVALBOT_HTTP=%q: it has to be on or off", s.HTTP))
	}
	if err := tools.CheckHosts(s.HTTPAllow); err != nil {
		wrong = append(wrong, fmt.Errorf("APPROVALBOT_HTTP_ALLOW: %w", err))
	}
	return wrong
}

// A messenger lets the tools reach people in Slack. The tools are made before Slack is there, and called after.
type messenger struct{ app *app }

func (m messenger) Post(ctx context.Context, msg tools.Message) (tools.Posted, error) {
	p, err := m.app.slack.Post(ctx, slackui.Post{
		To: msg.To, Name: msg.Name, Thread: msg.Thread, Text: msg.Text, Mention: msg.Mention, For: msg.Caller.Requesters, Run: msg.Caller.Run,
	})
	return tools.Posted(p), postError(err)
}

func (m messenger) Find(ctx context.Context, query string) ([]tools.Contact, bool, error) {
	found, more, err := m.app.slack.Find(ctx, query)
	contacts := make([]tools.Contact, len(found))
	for i, f := range found {
		contacts[i] = tools.Contact(f)
	}
	return contacts, more, postError(err)
}

// postError is an error of Slack's as a tool tells it.
func postError(err error) error {
	e, ok := errors.AsType[*slackui.PostError](err)
	if !ok {
		return err
	}
	code := tools.CodeToolFailed
	switch {
	case e.Unknown:
		code = tools.CodeUnknown
	case e.Missing:
		code = tools.CodeNotFound
	}
	return &tools.Error{Code: code, Message: e.Message}
}
