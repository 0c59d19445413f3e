package actions

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"approvalbot/internal/language"
)

// A secret is a reference to one. Its value is never kept in it.
type secret struct {
	name string // of the environment variable that the program gets
	env  string // of ours that holds it, or
	file string // the file that does
	line int
}

const (
	minSecret  = 4 // characters; a shorter one would be found everywhere in the output
	maxSecret  = 16 << 10
	safeSecret = 8 // characters, from which on it is hidden wherever it turns up, not only in the output of the action
)

// source says where it is.
func (s secret) source() string {
	if s.file != "" {
		return "the file " + s.file
	}
	return "the environment variable " + s.env
}

// phrase names it on a card.
func (s secret) phrase(l language.Language) string {
	switch {
	case s.file != "":
		return l.Tf("the secret %s from the file %s", s.name, s.file)
	case s.env != s.name:
		return l.Tf("the secret %s from the environment (%s)", s.name, s.env)
	}
	return l.Tf("the secret %s from the environment", s.name)
}

// resolve reads it. An error says what is wrong and never what it is.
func (s secret) resolve() (string, error) {
	value, err := os.Getenv(s.env), error(nil)
	if s.file != "" {
		value, err = readSecret(s.file)
	}
	switch {
	case err != nil:
		return "", err
	case value == "" && s.file == "":
		return "", fmt.Errorf("the environment variable %s is not set", s.env)
	case strings.ContainsRune(value, 0):
		return "", fmt.Errorf("%s holds a NUL character, which no environment variable can", s.source())
	case utf8.RuneCountInString(strings.Join(strings.Fields(value), "")) < minSecret:
		return "", fmt.Errorf("%s holds less than %d characters, too few to be a secret", s.source(), minSecret)
	}
	return value, nil
}

// readSecret reads a file without the line break at its end.
func readSecret(file string) (string, error) {
	info, err := os.Stat(file) // before it is opened: a FIFO would wait for somebody to write
	if err != nil {
		return "", fmt.Errorf("the file %s can't be read: %w", file, errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("the file %s is not a regular file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the file %s can't be read: %w", file, errors.Unwrap(err))
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", fmt.Errorf("the file %s can't be read: %w", file, errors.Unwrap(err))
	}
	if len(text) > maxSecret {
		return "", fmt.Errorf("the file %s has more than %d bytes", file, maxSecret)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}
