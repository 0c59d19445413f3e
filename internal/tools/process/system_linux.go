package process

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupAttributes put a command into the process group and let it die with us: the parent-death signal is for the
// moment before the group's guard can act.
func groupAttributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group, Pdeathsig: syscall.SIGKILL}
}

// keepDescriptors keeps what this program has open from the commands that it starts. Everything that Go opens is closed
// on exec already; this is about descriptors that the program was itself started with.
func keepDescriptors() {
	const first = 3 // after standard input, output and error
	if unix.CloseRange(first, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	closeOnExec("/proc/self/fd", first) // a kernel before 5.11
}
