package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file with settings that can't be read is named with the line, and never quoted: it may hold a token.
func TestLoadEnvNeverQuotes(t *testing.T) {
	for name, text := range map[string]string{
		"an open quote":  "# tokens\nSLACK_BOT_TOKEN=\"xoxb-not-real-5\nAPPROVALBOT_MODEL=demo\n",
		"no equals sign": "SLACK APP TOKEN xapp-not-real-4\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), ".env")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := loadEnv(file)
			if err == nil || strings.Contains(err.Error(), "not-real") || !strings.Contains(err.Error(), "line ") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestLoadEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(file, []byte("APPROVALBOT_TEST_A=\"from the file\"\nAPPROVALBOT_TEST_B=file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APPROVALBOT_TEST_B", "environment")
	t.Setenv("APPROVALBOT_TEST_A", "") // so that the test cleans up
	if err := os.Unsetenv("APPROVALBOT_TEST_A"); err != nil {
		t.Fatal(err)
	}
	if err := loadEnv(file); err != nil {
		t.Fatal(err)
	}
	if a, b := os.Getenv("APPROVALBOT_TEST_A"), os.Getenv("APPROVALBOT_TEST_B"); a != "from the file" || b != "environment" {
		t.Errorf("got %q and %q", a, b)
	}
	if err := loadEnv(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("no file is no error: %v", err)
	}
}

// A pipe in place of the file would make the start wait for ever.
func TestLoadEnvOfAPipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".env")
	if err := syscall.Mkfifo(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := loadEnv(file); err == nil {
		t.Error("it was read")
	}
}
