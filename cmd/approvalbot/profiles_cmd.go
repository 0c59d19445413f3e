package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"approvalbot/internal/profiles"
)

type profilesCmd struct {
	Check profilesCheckCmd `cmd:"" help:"Name everything that is wrong with a file of profiles, or show what it says."`
	Show  profilesShowCmd  `cmd:"" help:"Say which profile holds in a channel."`
}

type profilesCheckCmd struct {
	profilesFile
}

// Run prints a line for each profile.
func (c profilesCheckCmd) Run() error {
	f, err := c.read()
	if err != nil {
		return err
	}
	for _, p := range f.All() {
		describeProfile(os.Stdout, p, "")
	}
	return nil
}

type profilesShowCmd struct {
	profilesFile
	Channel string `help:"The channel, C…, or the id of a direct message, D…; without one, what holds for runs over HTTP."`
	Session string `help:"A conversation, to see the directory that it works in."`
}

// Run prints what holds in the channel.
func (c profilesShowCmd) Run() error {
	f, err := c.read()
	if err != nil {
		return err
	}
	p, ok := f.For(c.Channel)
	if !ok {
		fmt.Println("no profile: the settings hold as they are")
		return nil
	}
	describeProfile(os.Stdout, p, c.Session)
	return nil
}

// A profilesFile is the file that a command is about.
type profilesFile struct {
	File string `arg:"" optional:"" type:"path" env:"APPROVALBOT_PROFILES" help:"The file, such as deploy/profiles.example.yaml (default: APPROVALBOT_PROFILES)."`
}

// Help says where the settings come from.
func (profilesFile) Help() string { return sameSettings }

// read reads it with the settings of the environment, which say what a profile may not loosen.
func (c profilesFile) read() (*profiles.File, error) {
	if c.File == "" {
		return nil, errors.New("which file? Name one, or set APPROVALBOT_PROFILES")
	}
	s, err := readSettings()
	if err != nil && s.Profiles == "" { // what else is wrong with the settings is not the question here
		s = Settings{}
	}
	s.Profiles = c.File
	return s.profileFile()
}

func describeProfile(w io.Writer, p profiles.Profile, session string) {
	holds := append([]string(nil), p.Channels...)
	if p.Direct {
		holds = append(holds, "direct messages")
	}
	if p.Default {
		holds = append(holds, "everywhere else")
	}
	or := func(s, usual string) string {
		if s == "" {
			return usual
		}
		return s
	}
	fmt.Fprintf(w, "%s: %s\n", p.Name, strings.Join(holds, ", "))
	fmt.Fprintf(w, "  model         %s\n", or(p.Model, "as APPROVALBOT_MODEL"))
	dir := or(p.Dir(session), "as APPROVALBOT_WORKSPACE")
	if p.Own && session == "" {
		dir = p.Workspace + ", a directory in it for each conversation"
	}
	fmt.Fprintf(w, "  workspace     %s\n", dir)
	first, _, _ := strings.Cut(strings.TrimSpace(p.Instructions), "\n")
	fmt.Fprintf(w, "  instructions  %s\n", or(first, "as APPROVALBOT_INSTRUCTIONS"))
	if p.Settings.ApprovalPolicy != "" || p.Settings.SandboxMode != "" {
		fmt.Fprintf(w, "  stricter      %s\n", strings.TrimSpace(string(p.Settings.ApprovalPolicy)+" "+string(p.Settings.SandboxMode)))
	}
}
