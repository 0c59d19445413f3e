//go:build linux

package confine_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"approvalbot/internal/tools/confine"
)

// The test binary, run again as a program that has a secret in its environment, and closes itself or doesn't.
const hardenEnv = "CONFINE_TEST_HARDEN"

func hardened(how string) {
	if how == "yes" {
		if err := confine.Harden(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n') // until the test is done
}

// A program of the same user reads our environment, unless we have closed it. Root could still, so it is another user
// that tries it there.
func TestHarden(t *testing.T) {
	user := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		user.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for how, want := range map[string]bool{"no": true, "yes": false} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Dir, cmd.SysProcAttr = "/", user
		cmd.Env = []string{hardenEnv + "=" + how, "TOKEN=" + secret}
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q, %v", line, err)
		}
		for _, file := range []string{"environ", "maps"} {
			look := exec.Command("cat", fmt.Sprintf("/proc/%d/%s", cmd.Process.Pid, file))
			look.Dir, look.SysProcAttr = "/", user
			text, err := look.CombinedOutput()
			if got := err == nil && len(text) > 0; got != want || strings.Contains(string(text), secret) != (want && file == "environ") {
				t.Errorf("closed: %s; %s can be read: %v", how, file, got)
			}
		}
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
