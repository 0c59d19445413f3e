package confine

import (
	"fmt"
	"runtime"

	"github.com/elastic/go-seccomp-bpf"
	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// requiredABI is the first version of Landlock's interface that scopes signals. Everything that is asked of Landlock here
// is in it.
const requiredABI = 6

// Available says why commands can't be confined here; nil if they can. Whether a certain command can is seen when it is
// launched.
func Available() error {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return fmt.Errorf("commands can't be confined on this processor (%s): the filter of system calls is only known for amd64 and arm64", runtime.GOARCH)
	}
	switch abi, err := landlock.LandlockGetABIVersion(); {
	case err != nil:
		return fmt.Errorf("commands can't be confined here: the kernel has no Landlock, or it is switched off (%w). It takes Linux 6.12 with landlock among its security modules (lsm=…), and a container that doesn't forbid it", err)
	case abi < requiredABI:
		return fmt.Errorf("commands can't be confined here: this kernel's Landlock has version %d, and it takes %d (Linux 6.12), without which a command could stop other programs and leave something running", abi, requiredABI)
	}
	if !seccomp.Supported() {
		return fmt.Errorf("commands can't be confined here: the kernel doesn't filter system calls (seccomp)")
	}
	return nil
}

// Rights to files. Nobody gets to make devices: as the superuser, that would be every disk.
const (
	fileRead  = landlock.AccessFSExecute | landlock.AccessFSReadFile
	fileWrite = landlock.AccessFSWriteFile | landlock.AccessFSTruncate
	dirOnly   = landlock.AccessFSReadDir | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile | landlock.AccessFSMakeDir |
		landlock.AccessFSMakeReg | landlock.AccessFSMakeSock | landlock.AccessFSMakeFifo | landlock.AccessFSMakeSym | landlock.AccessFSRefer

	rightsLook   = landlock.AccessFSReadFile | landlock.AccessFSReadDir
	rightsRead   = fileRead | landlock.AccessFSReadDir
	rightsWrite  = fileRead | fileWrite | dirOnly
	rightsDevice = landlock.AccessFSReadFile | fileWrite
	rightsOfFile = fileRead | fileWrite // the others mean something for directories only

	everyRight = landlock.AccessFSIoctlDev<<1 - 1 // of the version that is required
	everyPort  = landlock.AccessNetBindTCP | landlock.AccessNetConnectTCP
	everyScope = landlock.ScopeSignal | landlock.ScopeAbstractUnixSocket
)

// restrictSignals enters a domain that differs from none only in what it may signal. Every domain takes the right to link
// and move files between directories (refer) unless it is given.
func restrictSignals() error {
	attr := landlock.RulesetAttr{HandledAccessFS: landlock.AccessFSRefer, Scoped: everyScope}
	return restrict(attr, func(ruleset int) error { return allow(ruleset, "/", landlock.AccessFSRefer) })
}

// restrictPaths enters a domain in which only the brief's files can be reached, and no process outside.
func restrictPaths(b brief) error {
	attr := landlock.RulesetAttr{HandledAccessFS: everyRight, Scoped: everyScope}
	if !b.Network {
		attr.HandledAccessNet = everyPort // the filter of system calls leaves no socket to try it with
	}
	return restrict(attr, func(ruleset int) error {
		for _, group := range []struct {
			paths  []string
			rights uint64
		}{{b.Look, rightsLook}, {b.Read, rightsRead}, {b.Write, rightsWrite}, {b.Devices, rightsDevice}} {
			for _, path := range group.paths {
				err := allow(ruleset, path, group.rights)
				if gone := err == unix.ENOENT || err == unix.EACCES; gone && group.rights != rightsWrite {
					continue // nobody can read it, and nobody was promised that they could
				}
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
		}
		return nil
	})
}

// restrict lets the calling thread enter a new domain.
func restrict(attr landlock.RulesetAttr, rules func(ruleset int) error) error {
	ruleset, err := landlock.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("Landlock: %w", err)
	}
	defer unix.Close(ruleset)
	if err := rules(ruleset); err != nil {
		return fmt.Errorf("Landlock: %w", err)
	}
	if err := landlock.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("Landlock: %w", err)
	}
	return nil
}

// allow adds a rule. Paths have been resolved, so a link in the last place has come since, and is not followed.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFDIR:
	default:
		rights &= rightsOfFile
	}
	return landlock.LandlockAddPathBeneathRule(ruleset, &landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}, 0)
}
