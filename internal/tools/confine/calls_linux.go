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
	// What processes of a user share without a file.
	"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop", "semctl", "mq_open", "mq_unlink",
	// Secrets that processes of a user share, and the clock and name of the machine.
	"add_key", "request_key", "keyctl", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime", "sethostname", "setdomainname",
}

// onlyOn are calls that one of the architectures hasn't.
var onlyOn = map[string]string{"iopl": "amd64", "ioperm": "amd64", "modify_ldt": "amd64"}

const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// notThere is the answer of a kernel that doesn't have a call: programs then take another one.
const notThere = seccomp.Action(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))

// policy is what is filtered on an architecture (as Go calls it); everything else is allowed.
func policy(goarch string, network bool) seccomp.Policy {
	denied := seccomp.SyscallGroup{Action: seccomp.ActionErrno}
	for _, name := range deniedCalls {
		if only, ok := onlyOn[name]; !ok || only == goarch {
			denied.Names = append(denied.Names, name)
		}
	}
	denied.NamesWithCondtions = append(conditions(), setIDs(goarch)...)
	if network {
		denied.NamesWithCondtions = append(denied.NamesWithCondtions, when("socket", isNot(0, unix.AF_INET), isNot(0, unix.AF_INET6)))
	} else {
		denied.Names = append(denied.Names, "socket")
	}
	return seccomp.Policy{
		DefaultAction: seccomp.ActionAllow,
		// The first two have their flags and modes in memory, where no filter can look. The last tells the names in
		// directories that can't be listed: Landlock isn't asked about watching.
		Syscalls: []seccomp.SyscallGroup{denied, {Names: []string{"clone3", "openat2", "inotify_add_watch"}, Action: notThere}},
	}
}

// conditions are the calls that are denied for some arguments only. Several of one call are alternatives.
func conditions() []seccomp.NameWithConditions {
	return []seccomp.NameWithConditions{
		when("clone", has(0, namespaces)),
		// Pairs are how many programs talk to their children. But a pair of datagram sockets (2, and 3 which means the
		// same) can be connected to others by their paths.
		when("socketpair", isNot(0, unix.AF_UNIX)),
		when("socketpair", has(1, unix.SOCK_DGRAM)),
		// Limits and priorities of others: a limit on time or on the size of files can end a program. 0 is oneself.
		when("prlimit64", isNot(0, 0)),
		when("setpriority", isNot(0, unix.PRIO_PROCESS)),
		when("setpriority", isNot(1, 0)),
		when("ioprio_set", isNot(0, 1)), // IOPRIO_WHO_PROCESS
		when("ioprio_set", isNot(1, 0)),
		when("sched_setscheduler", isNot(0, 0)),
		when("sched_setparam", isNot(0, 0)),
		when("sched_setattr", isNot(0, 0)),
		when("sched_setaffinity", isNot(0, 0)), // all of a program on one processor, which is kept busy
	}
}

// setIDs are the ways to make a file that runs with its owner's rights whoever runs it: anybody's way to our own user.
func setIDs(goarch string) (out []seccomp.NameWithConditions) {
	bits := func(argument uint32) seccomp.Condition { return has(argument, unix.S_ISUID|unix.S_ISGID) }
	out = []seccomp.NameWithConditions{
		when("fchmod", bits(1)), when("fchmodat", bits(2)), when("fchmodat2", bits(2)), when("mknodat", bits(2)),
		when("openat", has(2, unix.O_CREAT), bits(3)), when("openat", has(2, unix.O_TMPFILE&^unix.O_DIRECTORY), bits(3)),
	}
	if goarch == "amd64" { // which has the older calls as well
		out = append(out, when("chmod", bits(1)), when("mknod", bits(1)), when("creat", bits(1)),
			when("open", has(1, unix.O_CREAT), bits(2)), when("open", has(1, unix.O_TMPFILE&^unix.O_DIRECTORY), bits(2)))
	}
	return out
}

func when(name string, all ...seccomp.Condition) seccomp.NameWithConditions {
	return seccomp.NameWithConditions{Name: name, Conditions: all}
}

// isNot and has look at an argument: whether it is another value, whether it has any of the bits.
func isNot(argument uint32, value uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.NotEqual, Value: value}
}

func has(argument uint32, bits uint64) seccomp.Condition {
	return seccomp.Condition{Argument: argument, Operation: seccomp.BitsSet, Value: bits}
}

// filterCalls installs the filter for the calling thread.
func filterCalls(network bool) error {
	program, err := assemble(runtime.GOARCH, policy(runtime.GOARCH, network))
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
func assemble(goarch string, p seccomp.Policy) ([]unix.SockFilter, error) {
	info, err := arch.GetInfo(goarch)
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
