package tools

import (
	"errors"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// What differs between the systems that this package runs on is in the files named system.

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
