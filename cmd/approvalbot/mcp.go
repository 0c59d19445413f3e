package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"approvalbot/internal/agent"
	"approvalbot/internal/ledger"
	"approvalbot/internal/redact"
	"approvalbot/internal/tools"
	"approvalbot/internal/tools/mcp"
)

// settleLimit is how long a start waits for MCP servers. One that comes up later is there from then on.
const settleLimit = 10 * time.Second

// mcpServers are the servers of the configuration; none without one.
func (s *Settings) mcpServers() (mcp.Config, error) {
	if s.MCPConfig == "" {
		return mcp.Config{}, nil
	}
	c, err := mcp.ReadConfig(s.MCPConfig, os.LookupEnv)
	if err != nil {
		return c, fmt.Errorf("APPROVALBOT_MCP_CONFIG: %w", err)
	}
	return c, nil
}

// steered says of which servers the agent could change what they run: their program, a file that it is given, the directory
// in which it finds its modules and settings. They run unconfined, so that would lead out of a confined shell.
func (s *Settings) steered(c mcp.Config) (all []string) {
	for _, server := range c.Servers {
		if server.Kind != mcp.Stdio || server.Disabled {
			continue
		}
		paths := []string{server.Cwd}
		for _, text := range append([]string{server.Command}, server.Args...) {
			if text != "" && !filepath.IsAbs(text) {
				text = filepath.Join(server.Cwd, text)
			}
			if info, err := os.Stat(text); err == nil && info.Mode().IsRegular() {
				paths = append(paths, text)
			}
		}
		if i := slices.IndexFunc(paths, s.agentWrites); i >= 0 {
			all = append(all, fmt.Sprintf("the agent can change what the MCP server %s runs: %s is where it can write, and the server is not confined; put it somewhere else", server.Name, paths[i]))
		}
	}
	return all
}

// agentWrites tells whether a path is in the workspace, or where else confined commands may write.
func (s *Settings) agentWrites(path string) bool {
	real := func(path string) string {
		if abs, err := filepath.Abs(path); err == nil { // the workspace may be given from here
			path = abs
		}
		if r, err := filepath.EvalSymlinks(path); err == nil {
			return r
		}
		return path
	}
	for _, place := range slices.Concat([]string{s.Workspace}, s.ShellWrite, s.profileWorkspaces()) {
		if rel, err := filepath.Rel(real(place), real(path)); place != "" && err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// mcpTools are the tools that there are now, and what brings those of MCP servers among them.
type mcpTools struct {
	live        *tools.Live
	definitions *agent.Definitions
	servers     *mcp.Servers
	log         *slog.Logger
}

// openMCP puts the servers of the configuration behind the tools that never change. Nothing is started yet.
func openMCP(ctx context.Context, s Settings, journal *ledger.Ledger, fixed []tools.Tool, log *slog.Logger) (*mcpTools, error) {
	config, err := s.mcpServers()
	if err != nil {
		return nil, err
	}
	for _, text := range s.steered(config) {
		log.Warn(text)
	}
	m := &mcpTools{log: log}
	m.servers = mcp.New(config, mcp.Options{Version: version(), Logger: log, Language: s.Language, Publish: m.publish})
	if m.live, err = tools.NewLive(fixed, m.servers.Names()...); err != nil {
		return nil, err
	}
	m.definitions, err = agent.LoadDefinitions(ctx, journal)
	return m, err
}

// publish makes the tools of a server usable, once the journal knows how they are defined.
func (m *mcpTools) publish(ctx context.Context, server string, all []tools.Tool) error {
	set, err := tools.NewSet(all...)
	if err != nil {
		return err
	}
	if err := m.definitions.Record(ctx, set); err != nil {
		return err
	}
	return m.live.Replace(server, all...)
}

// wait gives the servers the time to come up before the first message is worked off: a run has the tools of its start.
func (m *mcpTools) wait(ctx context.Context) {
	timer := time.NewTimer(settleLimit)
	defer timer.Stop()
	select {
	case <-m.servers.Settled():
	case <-timer.C:
		m.log.Warn("not all MCP servers have come up yet; runs that begin now don't have their tools", "waited", settleLimit.String())
	case <-ctx.Done():
	}
}

// families are what the names of the servers' tools begin with.
func (m *mcpTools) families() (all []string) {
	for _, name := range m.servers.Names() {
		all = append(all, mcp.Prefix(name))
	}
	return all
}

// details are what /readyz says of the servers. One that isn't up keeps nothing from being ready: its tools are missing.
func (a *app) details() map[string]map[string]string {
	servers := map[string]string{}
	for _, s := range a.mcp.servers.Status() {
		servers[s.Server.Name] = describe(s)
	}
	if len(servers) == 0 {
		return nil
	}
	return map[string]map[string]string{"mcp": servers}
}

func describe(s mcp.Status) string {
	switch {
	case s.Err != nil:
		return "not up: " + s.Err.Error()
	case !s.Up:
		return "starting"
	case len(s.LeftOut) > 0:
		return fmt.Sprintf("up, %s, %d left out", counted(s.Tools, "tool"), len(s.LeftOut))
	}
	return fmt.Sprintf("up, %s", counted(s.Tools, "tool"))
}

// mcp starts every server of the configuration, says how it is, and ends it.
func (d *diagnosis) mcp(ctx context.Context, s Settings) {
	config, err := s.mcpServers()
	if err != nil || s.MCPConfig == "" {
		return // what is wrong with it was named with the settings
	}
	for _, one := range config.Servers {
		if one.Disabled {
			d.note("mcp", one.Name+" is disabled")
		}
	}
	for _, text := range s.steered(config) {
		d.note("mcp", text)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers := mcp.New(config, mcp.Options{
		Version: version(), Publish: func(context.Context, string, []tools.Tool) error { return nil },
	})
	ended := make(chan error, 1)
	go func() { ended <- servers.Run(ctx) }()
	<-servers.Settled() // each has a limit
	r := redact.New(s.secrets()...)
	for _, one := range servers.Status() {
		if one.Err != nil { // it may quote the server's program
			text, _ := r.Text(one.Err.Error())
			one.Err = errors.New(text)
		}
		d.server(one)
	}
	cancel()
	<-ended
}

func (d *diagnosis) server(s mcp.Status) {
	trust := "not trusted, so every call asks (under on_request)"
	if s.Server.Trust {
		trust = "trusted, so its hints count"
	}
	err := s.Err
	if err != nil {
		err = fmt.Errorf("%s (%s): %w; the bot starts without its tools and tries it again", s.Server.Name, s.Server.Place(), err)
	}
	d.check("mcp", fmt.Sprintf("%s (%s): %s, %s", s.Server.Name, s.Server.Place(), counted(s.Tools, "tool"), trust), err)
	for _, why := range s.LeftOut {
		d.note("mcp", s.Server.Name+": left out: "+why)
	}
}
