package process

import "syscall"

// groupAttributes put a command into the process group. There is no parent-death signal here; the group's guard kills
// the group when we are gone.
func groupAttributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group}
}

// keepDescriptors keeps what this program was started with from the commands that it starts.
func keepDescriptors() { closeOnExec("/dev/fd", 3) }
