package slackui

// Manifest is the Slack app manifest, YAML.
func Manifest() []byte { return nil }

// ManifestURL is the link that creates the app from the manifest.
func ManifestURL() string { return "" }
