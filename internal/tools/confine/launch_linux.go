package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// The launcher is this package's initialization, so that any binary that can confine (the program, a test of it) also
// knows how to launch, and so that little else has been initialized by then. It runs on the process's first thread, the
// one that the kernel looks at when a process is signalled, and stays on it: Landlock, capabilities and the filter belong
// to a thread, and a thread's are what the programs that it starts or becomes inherit.
func init() {
	if len(os.Args) == 2 && os.Args[0] == launcherArgv[0] && os.Args[1] == mark {
		runtime.LockOSThread()
		err := launch()
		unix.Write(0, []byte(strings.ReplaceAll(err.Error(), "\n", " ")+"\n"))
		os.Exit(exitNotLaunched)
	}
}

// exitNotLaunched is the status of a launcher that could not become the command.
const exitNotLaunched = 126

// launch becomes the command, or returns why it can't. See the package comment for the order.
func launch() error {
	b, err := readBrief()
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := enterScope(); err != nil {
		return err
	}
	keeper, err := startKeeper()
	if err != nil {
		return fmt.Errorf("the keeper can't be started: %w", err)
	}
	if err := restrictPaths(b); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	none := unix.Rlimit{}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &none); err != nil {
		return fmt.Errorf("core dumps can't be switched off: %w", err)
	}
	control, err := detach()
	if err != nil {
		return err
	}
	if err := filterCalls(b.Network); err != nil {
		unix.Dup3(control, 0, 0) // where the answer goes
		return err
	}
	if _, err := fmt.Fprintf(os.NewFile(uintptr(control), "control"), "ok %d\n", keeper); err != nil {
		return err
	}
	err = syscall.Exec(b.Argv[0], b.Argv, os.Environ())
	// Too late for another answer: this is the command's output now.
	fmt.Fprintf(os.Stderr, "%s: %v\n", b.Argv[0], err)
	os.Exit(exitNotLaunched)
	return err
}

// readBrief reads the one line that comes before anything else.
func readBrief() (b brief, err error) {
	var line []byte
	for buf := make([]byte, 32<<10); len(line) == 0 || line[len(line)-1] != '\n'; {
		n, err := unix.Read(0, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			return b, fmt.Errorf("the brief can't be read: %w", errors.Join(err, errors.New("it has no end")))
		}
		line = append(line, buf[:n]...)
	}
	if err := json.Unmarshal(line, &b); err != nil || len(b.Argv) == 0 {
		return b, errors.New("the brief can't be understood")
	}
	return b, nil
}

// enterScope enters the first domain, and makes sure that it holds: the keeper kills whatever it may signal, so nothing
// outside may be among that.
func enterScope() error {
	parent := os.Getppid()
	if err := unix.Kill(parent, 0); err != nil {
		return fmt.Errorf("the process that started this one can't be signalled, so that it couldn't be seen whether a scope of signals holds: %w", err)
	}
	if err := restrictSignals(); err != nil {
		return err
	}
	if err := unix.Kill(parent, 0); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("signals still reach processes outside (%v)", err)
	}
	return nil
}

// keeperScript leaves a process behind that waits until nobody holds the other end of its standard input, and then kills
// all that it may signal. It prints that process's number.
const keeperScript = `exec 3<&0; (trap '' HUP INT QUIT TERM; exec >/dev/null 2>&1; read -r _; kill -KILL -1) <&3 3<&- & echo $!`

// startKeeper starts the keeper in a session of its own, and as nobody's child: the command would find it among its own.
func startKeeper() (pid int, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer read.Close()
	p, err := os.StartProcess("/bin/sh", []string{"/bin/sh", "-c", keeperScript}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{os.Stdin, write, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	write.Close()
	if err != nil {
		return 0, err
	}
	_, scanErr := fmt.Fscan(read, &pid)
	state, err := p.Wait()
	switch {
	case err != nil:
		return 0, err
	case scanErr != nil || !state.Success() || pid <= 1:
		return 0, fmt.Errorf("it ended with %v", state)
	}
	return pid, nil
}

// detach moves the socket away from the standard input, which a command doesn't have, to a descriptor that the command
// won't get.
func detach() (control int, err error) {
	control, err = unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return 0, err
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Dup3(null, 0, 0)
	}
	if err != nil {
		unix.Dup3(control, 0, 0)
		return 0, fmt.Errorf("/dev/null: %w", err)
	}
	return control, nil
}

// dropCapabilities gives up every capability, which with no_new_privs no program can get back. Some lead past Landlock:
// who may watch performance (CAP_PERFMON) may read every environment since Linux 6.13.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("capabilities can't be given up: %w", err)
	}
	return nil
}
