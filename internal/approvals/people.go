package approvals

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Approvers is a parsed list of who may do something. The zero value is nobody.
type Approvers struct {
	words     []string // as listed, each once
	requester bool     // who asked
	channel   bool     // full members of the channel where it stands
	members   bool     // full members of the workspace
	users     []string // Slack user ids
	groups    []string // Slack user group ids
}

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{1,30}$`)
)

// ParseApprovers reads a list of who may approve: requester, channel, user ids (U…, W…), user group ids (S…).
func ParseApprovers(list []string) (Approvers, error) {
	return parse(list, "requester")
}

// ParseRequesters reads a list of who may start runs: members, channel, user ids (U…, W…), user group ids (S…).
func ParseRequesters(list []string) (Approvers, error) {
	return parse(list, "members")
}

// parse reads a list in which the word special may stand besides channel and ids.
func parse(list []string, special string) (Approvers, error) {
	var a Approvers
	var wrong []string
	for _, word := range list {
		word = strings.TrimSpace(word)
		if slices.Contains(a.words, word) || slices.Contains(wrong, word) {
			continue
		}
		if a.add(word, special) {
			a.words = append(a.words, word)
		} else {
			wrong = append(wrong, word)
		}
	}
	if wrong != nil {
		return Approvers{}, unreadable(wrong, special)
	}
	// An empty list must never come to mean everyone: whoever wants nobody has to say so by other means.
	if len(a.words) == 0 {
		return Approvers{}, fmt.Errorf("%w: the list is empty: name %s", ErrInvalid, choices(special))
	}
	return a, nil
}

func (a *Approvers) add(word, special string) bool {
	switch {
	case word == "channel":
		a.channel = true
	case word == special && word == "requester":
		a.requester = true
	case word == special && word == "members":
		a.members = true
	case userID.MatchString(word):
		a.users = append(a.users, word)
	case groupID.MatchString(word):
		a.groups = append(a.groups, word)
	default:
		return false
	}
	return true
}

func choices(special string) string {
	return special + ", channel, user ids (U…) or user group ids (S…)"
}

// unreadable names every word that can't stand in a list, and what may have been meant.
func unreadable(words []string, special string) error {
	var named, hints []string
	for _, word := range words {
		named = append(named, fmt.Sprintf("%q", word))
		hint := ""
		switch {
		case strings.HasPrefix(word, "@"):
			hint = "; a person or group is named by its id, which Slack shows under \"Copy member ID\" or \"Copy group ID\""
		case strings.HasPrefix(word, "#"), strings.HasPrefix(word, "C"):
			hint = "; a certain channel can't be listed: the word channel means the one where the request stands"
		}
		if hint != "" && !slices.Contains(hints, hint) {
			hints = append(hints, hint)
		}
	}
	are := " is not one of "
	if n := len(named); n > 1 {
		named, are = []string{strings.Join(named[:n-1], ", ") + " and " + named[n-1]}, " are not among "
	}
	return fmt.Errorf("%w: %s%s%s%s", ErrInvalid, named[0], are, choices(special), strings.Join(hints, ""))
}

// and is the list with more users and groups in it. The list itself stays as it is.
func (a Approvers) and(words []string) Approvers {
	a.words, a.users, a.groups = slices.Clip(a.words), slices.Clip(a.users), slices.Clip(a.groups)
	for _, word := range words {
		if !slices.Contains(a.words, word) && a.add(word, "") {
			a.words = append(a.words, word)
		}
	}
	return a
}

// List is the list as it was read.
func (a Approvers) List() []string { return slices.Clone(a.words) }

// Empty tells whether nobody is listed.
func (a Approvers) Empty() bool { return len(a.words) == 0 }

// String is the list as one would write it into a setting.
func (a Approvers) String() string { return strings.Join(a.words, ",") }
