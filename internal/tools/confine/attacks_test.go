//go:build linux

package confine_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attacks are what a confined program tries. Each returns nil if it got what it wanted.
var attacks = map[string]func(args []string) error{
	"environment": func(args []string) error { return open("/proc/" + args[0] + "/environ") },
	"memory":      func(args []string) error { return open("/proc/" + args[0] + "/mem") },
	"maps":        func(args []string) error { return open("/proc/" + args[0] + "/maps") },
	"descriptors": func(args []string) error { return open("/proc/" + args[0] + "/fd/0") },
	"root":        func(args []string) error { return open("/proc/" + args[0] + "/root" + args[1]) },
	"directory":   func(args []string) error { _, err := os.Readlink("/proc/" + args[0] + "/cwd"); return err },
	"tasks": func(args []string) error { // the same by way of a thread
		return open(fmt.Sprintf("/proc/%s/task/%[1]s/environ", args[0]))
	},
	"every environment": everyEnvironment,
	"trace":             func(args []string) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, pid(args), 0, 0) },
	"read memory": func(args []string) error {
		var local, remote [8]byte
		l := unix.Iovec{Base: &local[0], Len: 8}
		r := unix.RemoteIovec{Base: uintptr(unsafe.Pointer(&remote[0])), Len: 8}
		err := call(unix.SYS_PROCESS_VM_READV, pid(args), uintptr(unsafe.Pointer(&l)), 1, uintptr(unsafe.Pointer(&r)), 1)
		if errors.Is(err, unix.EFAULT) { // it was looked for there
			return nil
		}
		return err
	},
	"signal":        func(args []string) error { return unix.Kill(int(pid(args)), 0) },
	"signal thread": func(args []string) error { return unix.Tgkill(int(pid(args)), int(pid(args)), 0) },
	"signal by descriptor": func(args []string) error {
		fd, err := unix.PidfdOpen(int(pid(args)), 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	},
	"take descriptor": func(args []string) error {
		fd, err := unix.PidfdOpen(int(pid(args)), 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	},
	"limits": func(args []string) error {
		var old unix.Rlimit
		return unix.Prlimit(int(pid(args)), unix.RLIMIT_NOFILE, nil, &old)
	},
	"priority": func(args []string) error { return unix.Setpriority(unix.PRIO_PROCESS, int(pid(args)), 0) },
	"processors": func(args []string) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(int(pid(args)), &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(int(pid(args)), &set)
	},
	"watch": func(args []string) error {
		fd, err := unix.InotifyInit()
		if err == nil {
			_, err = unix.InotifyAddWatch(fd, args[0], unix.IN_CREATE)
		}
		return err
	},
	"priority of all": func([]string) error { return unix.Setpriority(unix.PRIO_USER, 0, 0) },
	"shared memory": func([]string) error {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600)
		if err == nil {
			_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		}
		return err
	},
	"set-user-id": func(args []string) error { return os.Chmod(args[0], 0o755|os.ModeSetuid) },
	"set-user-id from the start": func(args []string) error {
		fd, err := unix.Open(filepath.Join(args[0], "setuid"), unix.O_CREAT|unix.O_WRONLY, 0o4755)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	},
	"set-user-id without a name": func(args []string) error {
		fd, err := unix.Open(args[0], unix.O_TMPFILE|unix.O_WRONLY, 0o4755)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	},
	"signal by event":   signalByEvent,
	"tcp":               func(args []string) error { return dial("tcp", args[0]) },
	"udp":               func(args []string) error { return dial("udp", args[0]) },
	"path socket":       func(args []string) error { return dial("unix", args[0]) },
	"abstract socket":   func(args []string) error { return dial("unix", "@"+args[0]) },
	"netlink":           func([]string) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW) },
	"packets":           func([]string) error { return socket(unix.AF_PACKET, unix.SOCK_RAW) },
	"virtual machine":   func([]string) error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM) },
	"odd domain":        func([]string) error { return call(unix.SYS_SOCKET, unix.AF_UNIX|1<<32, unix.SOCK_STREAM, 0) },
	"datagram pair":     datagramPair,
	"asynchronous ring": func([]string) error { return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&[120]byte{}))) },
	"user namespace":    func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"child with a namespace": func([]string) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS}
		return cmd.Run()
	},
	"change root": func(args []string) error { return unix.Chroot(args[0]) },
	"keys":        func([]string) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err },
	"bpf":         func([]string) error { return call(unix.SYS_BPF, 0, 0, 0) },
	"a disk": func(args []string) error {
		return unix.Mknod(filepath.Join(args[0], "disk"), unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0)))
	},
	"handle": func(args []string) error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, args[0], 0); return err },
	"old calls": func(args []string) error {
		file := filepath.Join(args[0], "old")
		if err := os.WriteFile(file, oldCalls(), 0o755); err != nil {
			return err
		}
		return exec.Command(file).Run()
	},
}

// signalByEvent lets the kernel send a signal to somebody when a pipe can be read.
func signalByEvent(args []string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	fd := read.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETOWN, int(pid(args))); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGUSR1)); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
		return err
	}
	if _, err := write.WriteString("x"); err != nil {
		return err
	}
	for range 1000 { // it is dead as soon as it runs
		stat, err := os.ReadFile("/proc/" + args[0] + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return nil
		}
		runtime.Gosched()
	}
	return errors.New("it lives")
}

func open(path string) error {
	f, err := os.Open(path)
	if err == nil {
		err = f.Close()
	}
	return err
}

func pid(args []string) uintptr {
	n, _ := strconv.Atoi(args[0])
	return uintptr(n)
}

func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func socket(domain, kind int) error {
	_, err := unix.Socket(domain, kind, 0)
	return err
}

func dial(network, address string) error {
	c, err := net.Dial(network, address)
	if err == nil {
		err = c.Close()
	}
	return err
}

// everyEnvironment looks for the secret wherever it might stand.
func everyEnvironment([]string) error {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if text, readErr := os.ReadFile(file); readErr == nil && strings.Contains(string(text), secret) {
			return nil
		}
	}
	return errors.Join(err, errors.New("it is nowhere"))
}

// datagramPair makes a pair of connected sockets, of which one can be connected to somebody else's path after all.
func datagramPair(args []string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Connect(pair[0], &unix.SockaddrUnix{Name: args[0]})
}

// oldCalls is a program that asks for its process number as 32-bit programs do, and ends well.
func oldCalls() []byte {
	code := []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05} // mov eax, getpid; int 0x80; exit(0)
	const at, headers = 0x400000, 120
	le := func(v uint64, size int) (out []byte) {
		for i := range size {
			out = append(out, byte(v>>(8*i)))
		}
		return out
	}
	var b []byte
	for _, part := range [][]byte{
		{0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, le(2, 2), le(62, 2), le(1, 4), le(at+headers, 8), le(64, 8), le(0, 8),
		le(0, 4), le(64, 2), le(56, 2), le(1, 2), le(0, 6), // no sections
		le(1, 4), le(5, 4), le(0, 8), le(at, 8), le(at, 8), le(headers+uint64(len(code)), 8), le(headers+uint64(len(code)), 8), le(0x1000, 8),
		code,
	} {
		b = append(b, part...)
	}
	return b
}

// Every way to us and around the walls that a program has is refused, with the network off and on, and works where
// nothing holds it (where that can be tried without harm, and needs no right that the tests may lack).
func TestAttacks(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", secret)
	p := newPlace(t)
	tcp, path, abstract := listeners(t, p)
	bot, script := victim(t), filepath.Join(p.workspace, "script")
	p.put(script, "")
	table := []struct {
		name    string
		args    []string
		network bool // it is refused with the network on, too
		control bool // it is tried with nothing to hold it, too
	}{
		{"environment", []string{bot}, true, true},
		{"every environment", nil, true, true},
		{"memory", []string{bot}, true, true},
		{"maps", []string{bot}, true, true},
		{"tasks", []string{bot}, true, true},
		{"descriptors", []string{bot}, true, true},
		{"root", []string{bot, p.secrets + "/.env"}, true, true},
		{"root", []string{"self", p.secrets + "/.env"}, true, true},
		{"directory", []string{bot}, true, true},
		{"trace", []string{bot}, true, false},
		{"read memory", []string{bot}, true, true},
		{"signal", []string{bot}, true, true},
		{"signal thread", []string{bot}, true, true},
		{"signal by descriptor", []string{bot}, true, true},
		{"signal", []string{strconv.Itoa(os.Getpid())}, true, true},
		{"take descriptor", []string{bot}, true, true},
		{"limits", []string{bot}, true, true},
		{"priority", []string{bot}, true, true},
		{"processors", []string{bot}, true, true},
		{"watch", []string{p.secrets}, true, true},
		{"priority of all", nil, true, false},
		{"shared memory", nil, true, true},
		{"set-user-id", []string{script}, true, true},
		{"set-user-id from the start", []string{p.workspace}, true, true},
		{"set-user-id without a name", []string{p.workspace}, true, true},
		{"tcp", []string{tcp}, false, true},
		{"udp", []string{tcp}, false, true},
		{"path socket", []string{path}, true, true},
		{"abstract socket", []string{abstract}, true, true},
		{"netlink", nil, true, true},
		{"packets", nil, true, false},
		{"virtual machine", nil, true, false},
		{"odd domain", nil, true, false},
		{"datagram pair", []string{path + ".datagrams"}, true, true},
		{"asynchronous ring", nil, true, false},
		{"user namespace", nil, true, false},
		{"child with a namespace", nil, true, false},
		{"change root", []string{"/"}, true, false},
		{"keys", nil, true, false},
		{"bpf", nil, true, false},
		{"a disk", []string{p.workspace}, true, false},
		{"handle", []string{"/usr"}, true, false},
	}
	var all, control []try
	for _, tt := range table {
		all = append(all, try{tt.name, tt.args})
		if tt.control {
			control = append(control, try{tt.name, tt.args})
		}
	}
	for i, outcome := range p.outcomes(p.free(attackWith(control...)), len(control)) {
		if refused(outcome) {
			t.Errorf("%s is no attack: %s", control[i].Name, outcome)
		}
	}
	o := p.options()
	off := p.outcomes(p.run(o, attackWith(all...)), len(all))
	o.Network = true
	on := p.outcomes(p.run(o, attackWith(all...)), len(all))
	for i, tt := range table {
		if !refused(off[i]) {
			t.Errorf("%s: %s", tt.name, off[i])
		}
		if refused(on[i]) != tt.network {
			t.Errorf("%s, with the network on: %s", tt.name, on[i])
		}
	}
}

// A signal that the kernel sends on a program's behalf is one of that program.
func TestSignalByEvent(t *testing.T) {
	p := newPlace(t)
	bot := victim(t)
	command := attackWith(try{"signal by event", []string{bot}})
	if end := p.run(p.options(), command); !refused(end.Text) {
		t.Errorf("confined: %s", end.Text)
	}
	if end := p.free(command); refused(end.Text) {
		t.Errorf("it is no attack: %s", end.Text)
	}
}

// Programs of another architecture of this processor, whose system calls have other numbers, are ended at their first.
func TestOldCallsEnd(t *testing.T) {
	p := newPlace(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no older architecture here")
	}
	command := attackWith(try{"old calls", []string{p.workspace}})
	if end := p.free(command); refused(end.Text) {
		t.Skip("this kernel doesn't run 32-bit programs: " + end.Text)
	}
	if end := p.run(p.options(), command); !strings.Contains(end.Text, "bad system call") {
		t.Errorf("got %s", end.Text)
	}
}

// victim is a process of the same user, as the bot is, with the secret in its environment.
func victim(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Stdin = os.Stdin
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return strconv.Itoa(cmd.Process.Pid)
}

// listeners are where the bot's API, and services of the machine, might listen.
func listeners(t *testing.T, p *place) (tcp, path, abstract string) {
	t.Helper()
	path, abstract = filepath.Join(p.secrets, "..", "s"), "confine-test-"+strconv.Itoa(os.Getpid())
	for _, l := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", path}, {"unix", "@" + abstract}} {
		ln, err := net.Listen(l.network, l.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		if l.network == "tcp" {
			tcp = ln.Addr().String()
		}
	}
	datagrams, err := net.ListenPacket("unixgram", path+".datagrams")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { datagrams.Close() })
	return tcp, path, abstract
}
