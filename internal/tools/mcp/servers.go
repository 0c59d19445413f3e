package mcp

import (
	"context"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/language"
	"approvalbot/internal/tools"
	"approvalbot/internal/tools/process"
)

// Options are what servers need to know of the program that uses them.
type Options struct {
	Version   string // of this program, for the servers
	MaxOutput int    // bytes of a result that are kept; 0 means 32 KiB
	Logger    *slog.Logger
	Language  language.Language // of what people read on cards

	// Publish is told the tools of a server whenever they change: none while it isn't up. They can be used only once it
	// has returned nil; an error counts as the server's failure, and it is started again later. Several servers may call
	// it at once.
	Publish func(ctx context.Context, server string, all []tools.Tool) error
}

const defaultMaxOutput = 32 << 10

// Servers are the MCP servers of a configuration, but for the disabled ones.
type Servers struct {
	servers []*server
	settled chan struct{}
}

// New makes the servers. Nothing is started before [Servers.Run].
func New(c Config, o Options) *Servers {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultMaxOutput
	}
	s := &Servers{settled: make(chan struct{})}
	for _, config := range c.Servers {
		if !config.Disabled {
			s.servers = append(s.servers, newServer(config, o))
		}
	}
	return s
}

// Run keeps the servers up until ctx ends, then ends them and returns when nothing is left of them. It is called once.
func (s *Servers) Run(ctx context.Context) error {
	process.KeepDescriptors()
	var all, first sync.WaitGroup
	for _, one := range s.servers {
		first.Add(1)
		all.Go(func() { one.run(ctx, sync.OnceFunc(first.Done)) })
	}
	all.Go(func() {
		first.Wait()
		close(s.settled)
	})
	all.Wait()
	return nil
}

// Settled is closed when each server is up or has failed to come up for the first time.
func (s *Servers) Settled() <-chan struct{} { return s.settled }

// Status is how a server is.
type Status struct {
	Server  Server
	Up      bool
	Tools   int      // that can be used
	LeftOut []string // tools that can't, each with why
	Err     error    // why it isn't up; nil while it is being started for the first time
}

// Status returns how the servers are, in the order of the configuration.
func (s *Servers) Status() []Status {
	all := make([]Status, len(s.servers))
	for i, one := range s.servers {
		all[i] = one.status()
	}
	return all
}

// Names are the servers' names, in the order of the configuration.
func (s *Servers) Names() []string {
	all := make([]string, len(s.servers))
	for i, one := range s.servers {
		all[i] = one.config.Name
	}
	return all
}

// Prefix is what the names of a server's tools begin with.
func Prefix(server string) string { return prefix + serverPart(server) + separator }

func implementation(version string) *sdk.Implementation {
	return &sdk.Implementation{Name: "approvalbot", Version: version}
}
