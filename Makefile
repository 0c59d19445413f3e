# The commands that people and CI use. Nothing needs to be installed but Go and a C compiler for the race detector.
GO ?= go
RELEASE ?= $(shell git describe --tags --always --dirty 2>/dev/null)
MODEL ?= demo

# dev and run don't use `go run`: that reports an error when one ends the program with Ctrl-C, which is how it is ended.
.PHONY: dev run test check bench build servers

## dev: a local Slack in the browser and the bot, without an account or a key; with MODEL=anthropic/NAME or
## MODEL=openai/NAME and that provider's key in the environment, with a real model
dev:
	$(GO) build -o bin/approvalbot ./cmd/approvalbot
	@exec bin/approvalbot dev --model $(MODEL)

## run: work in a real workspace (settings from the environment and .env)
run:
	$(GO) build -o bin/approvalbot ./cmd/approvalbot
	@exec bin/approvalbot serve

## servers: programs that aren't ours, which some tests work against (needs npm; those tests are skipped without it)
servers:
	cd test/npm && npm ci

## test: all tests, with the race detector, in random order
test:
	$(GO) test -race -shuffle=on -count=1 -timeout 20m ./...

## check: what CI runs besides the tests
check:
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff
	GOOS=darwin GOARCH=arm64 $(GO) build -o /dev/null ./cmd/approvalbot

## bench: the figures of the README, as a table (some minutes). The test runs in fake time and hands over its figures
bench:
	@$(GO) test -run '^(TestSixtyAsksInOneChannel|TestTwoHundredRunsAtOnce)$$' -bench . -benchmem -v -timeout 30m ./... | $(GO) run ./internal/benchtable

## build: one static binary
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.release=$(RELEASE)" -o bin/approvalbot ./cmd/approvalbot
