package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// deniedCalls are what a command never needs and what could lead around the rest. Most take a capability that it doesn't
// have anyway; what takes none is why the list is here.
var deniedCalls = []string{
	// Other processes. Landlock keeps those outside closed; this holds for the rest of them, too.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "move_pages", "migrate_pages",
	// Ways to do what is filtered without a system call that a filter sees.
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	// Files by other names than paths, and other views of the file system.
	"open_by_handle_at", "name_to_handle_at", "mount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount", "mount_setattr",
	"fsopen", "fsconfig", "fsmount", "fspick", "unshare", "setns", "quotactl", "quotactl_fd", "fanotify_init",
	// The kernel, and faults that were found in it before.
	"bpf", "perf_event_open", "userfaultfd", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load",
	"reboot", "swapon", "swapoff", "acct", "syslog", "iopl", "ioperm", "modify_ldt", "lookup_dcookie", "vhangup",
	// Secrets that processes of a user share, and the clock and name of the machine.
	"add_key", "request_key", "keyctl", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname",
}

// onlyOn are calls that one of the architectures hasn't.
var onlyOn = map[string]string{"iopl": "amd64", "ioperm": "amd64", "modify_ldt": "amd64"}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// notThere is the answer of a kernel that doesn't have a call: programs then take another one.
const notThere = seccomp.Action(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))

// policy is what is filtered; everything else is allowed.
func policy(network bool) seccomp.Policy {
	denied := seccomp.SyscallGroup{Action: seccomp.ActionErrno}
	for _, name := range deniedCalls {
		if only, ok := onlyOn[name]; !ok || only == runtime.GOARCH {
			denied.Names = append(denied.Names, name)
		}
	}
	conditional := func(name string, conditions ...seccomp.Condition) {
		denied.NamesWithCondtions = append(denied.NamesWithCondtions, seccomp.NameWithConditions{Name: name, Conditions: conditions})
	}
	conditional("clone", seccomp.Condition{Argument: 0, Operation: seccomp.BitsSet, Value: namespaces})
	if network {
		conditional("socket",
			seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_INET},
			seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_INET6})
	} else {
		denied.Names = append(denied.Names, "socket")
	}
	// Pairs are how many programs talk to their children. But a pair of datagram sockets (2, and 3 which means the same)
	// can be connected to others by their paths.
	conditional("socketpair", seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: unix.AF_UNIX})
	conditional("socketpair", seccomp.Condition{Argument: 1, Operation: seccomp.BitsSet, Value: unix.SOCK_DGRAM})
	return seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		// clone3 has its flags in memory, where no filter can look.
		Syscalls: []seccomp.SyscallGroup{denied, {Names: []string{"clone3"}, Action: notThere}},
	}
}

// filterCalls installs the filter for the calling thread.
func filterCalls(network bool) error {
	program, err := assemble(policy(network))
	if err != nil {
		return fmt.Errorf("the filter of system calls: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("the filter of system calls: %w", errno)
	}
	return nil
}

// Offsets in the data that a filter sees.
const (
	offsetNumber = 0
	offsetArch   = 4
)

// assemble puts in front what the library does otherwise: it lets everything of another architecture pass, and a 64-bit
// kernel also takes the calls of 32-bit programs. And what is newer than the table that the names come from is not known,
// so it isn't there.
func assemble(p seccomp.Policy) ([]unix.SockFilter, error) {
	info, err := arch.GetInfo(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	newest := 0
	for number := range info.SyscallNumbers {
		newest = max(newest, number)
	}
	const load, equal, greater, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	program := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: uint32(info.ID), Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: offsetNumber},
		{Code: greater, K: uint32(newest), Jf: 1},
		{Code: ret, K: uint32(notThere)},
	}
	instructions, err := p.Assemble()
	if err != nil {
		return nil, err
	}
	for _, instruction := range instructions {
		raw, err := instruction.Assemble()
		if err != nil {
			return nil, err
		}
		program = append(program, unix.SockFilter{Code: raw.Op, Jt: raw.Jt, Jf: raw.Jf, K: raw.K})
	}
	return program, nil
}
