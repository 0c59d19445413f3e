package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Options say what commands may reach.
type Options struct {
	// Workspace is the directory in which commands may do what they like.
	Workspace string
	// Protected are files and directories of ours, which stay out of reach whatever else is given. They need not exist.
	Protected []string
	// Read and Write are further files and directories, by absolute paths, that commands may read (and execute), or also
	// change.
	Read, Write []string
	// Network lets commands talk IPv4 and IPv6.
	Network bool
}

// A Sandbox is what commands are kept to. It is not changed, and safe for concurrent use.
type Sandbox struct {
	brief brief // without what differs between commands
	note  string
}

// A brief is what the launcher is told. Nothing in it is secret.
type brief struct {
	Argv    []string `json:"argv"`
	Look    []string `json:"look"`    // may be read
	Read    []string `json:"read"`    // may be read and executed
	Write   []string `json:"write"`   // all but devices may be made there
	Devices []string `json:"devices"` // may be read and written as they are
	Network bool     `json:"network"`
}

// What usual programs need. The rest of the file system can't even be looked at. Of what administrators fill (/etc, /opt)
// there is what every user of the machine may read: commands are our own user, who may own more there than we know of.
var (
	systemRead    = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}
	systemPublic  = []string{"/opt", "/etc", "/etc/resolv.conf"} // the last is often a link that leads out
	systemDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
)

// New works out what commands may reach. An error says what to change; it is of no use to try again.
func New(o Options) (*Sandbox, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	h, err := newHidden(o.Protected)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{brief: brief{Network: o.Network, Look: []string{"/proc"}}}
	workspace, err := h.writable(o.Workspace)
	if err != nil {
		return nil, fmt.Errorf("the workspace %w", err)
	}
	s.brief.Write = []string{workspace}
	if err := s.system(h); err != nil {
		return nil, err
	}
	for _, path := range o.Read {
		real, err := h.readable(path)
		if err != nil {
			return nil, fmt.Errorf("what commands may read: %w", err)
		}
		s.brief.Read = append(s.brief.Read, real)
	}
	for _, path := range o.Write {
		real, err := h.writable(path)
		if err != nil {
			return nil, fmt.Errorf("what commands may write: %w", err)
		}
		s.brief.Write = append(s.brief.Write, real)
	}
	s.note = note(o)
	return s, nil
}

// system adds what usual programs need.
func (s *Sandbox) system(h hidden) error {
	for _, path := range systemRead {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		paths, err := h.expand(real)
		if err != nil {
			return err
		}
		s.brief.Read = append(s.brief.Read, paths...)
	}
	for _, path := range systemPublic {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		paths, _, err := h.public(real)
		if err != nil {
			return err
		}
		s.brief.Read = append(s.brief.Read, paths...)
	}
	for _, path := range systemDevices {
		if _, err := os.Stat(path); err == nil {
			s.brief.Devices = append(s.brief.Devices, path)
		}
	}
	return nil
}

// note is what people are told of the confinement, in as few words as it takes.
func note(o Options) string {
	where := "the workspace"
	if len(o.Write) > 0 {
		where += " and " + strings.Join(o.Write, ", ")
	}
	network := "no network"
	if o.Network {
		network = "it can use the network"
	}
	return fmt.Sprintf("Confined: can write only in %s; %s.", where, network)
}

// Note is the sentence that stands wherever a confined command is offered.
func (s *Sandbox) Note() string { return s.note }

// Launch says how a command is started confined: the launcher's own arguments, and what it is told on its standard input
// (see process.Command.Launch). The command can write in temp, too, which is a directory of its own. The launcher is
// started in the directory and with the environment that the command is to have.
func (s *Sandbox) Launch(temp string, argv ...string) (launcher []string, told []byte, err error) {
	b := s.brief
	b.Argv = argv
	b.Write = append(append([]string(nil), b.Write...), temp)
	for _, arg := range append(b.Write, argv...) {
		if !utf8.ValidString(arg) { // JSON would replace what isn't
			return nil, nil, fmt.Errorf("%q is not valid UTF-8", arg)
		}
	}
	told, err = json.Marshal(b) // one line: line breaks are escaped in it
	return launcherArgv, told, err
}

// launcherArgv starts this program's own binary, also if the file has been replaced since.
var launcherArgv = []string{"/proc/self/exe", mark}

// mark is the argument by which a launcher recognizes itself.
const mark = "approvalbot:confined"
