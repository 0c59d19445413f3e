package main

import (
	"os"
	"testing"

	"approvalbot/internal/devslack"
	"approvalbot/internal/slackui"
)

// Slack would install it, as far as the local Slack knows Slack: dev and every scenario run with what it grants.
func TestManifestInstalls(t *testing.T) {
	if _, err := devslack.ReadManifest(slackui.Manifest()); err != nil {
		t.Error(err)
	}
}

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
