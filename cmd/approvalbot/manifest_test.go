package main

import (
	"os"
	"testing"

	"approvalbot/internal/slackui"
)

// deploy/manifest.yaml is what `approvalbot manifest` prints.
func TestManifestFile(t *testing.T) {
	file, err := os.ReadFile("../../deploy/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(file) != string(slackui.Manifest()) {
		t.Error("deploy/manifest.yaml is out of date; write it with: go run ./cmd/approvalbot manifest > deploy/manifest.yaml")
	}
}
