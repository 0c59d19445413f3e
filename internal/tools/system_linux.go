package tools

import (
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What differs between the systems that this package runs on is in the files named system.

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

// realPath asks the kernel what an open file's path is.
func realPath(f *os.File) (string, error) {
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
}

// The file systems in which the kernel shows itself: what looks like a file there can block for ever, say what this
// process holds, or do something when it is read.
var kernelFileSystems = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC,
}

func kernelFile(f *os.File) bool {
	var fs unix.Statfs_t
	raw, err := f.SyscallConn()
	if err == nil {
		failed := raw.Control(func(fd uintptr) { err = unix.Fstatfs(int(fd), &fs) })
		err = errors.Join(err, failed)
	}
	return err != nil || slices.Contains(kernelFileSystems, int64(fs.Type)) // not known is no
}
