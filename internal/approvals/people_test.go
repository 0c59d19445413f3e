package approvals

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	type parser func([]string) (Approvers, error)
	tests := map[string]struct {
		parse parser
		in    []string
		want  []string
		err   string // a part of it
	}{
		"all words":             {ParseApprovers, []string{"requester", "channel", "U012AB", "W9", "S01"}, []string{"requester", "channel", "U012AB", "W9", "S01"}, ""},
		"spaces and repetition": {ParseApprovers, []string{" channel", "U1 ", "channel", "U1"}, []string{"channel", "U1"}, ""},
		"members start runs":    {ParseRequesters, []string{"members", "S01"}, []string{"members", "S01"}, ""},
		"nil":                   {ParseApprovers, nil, nil, "the list is empty: name requester, channel"},
		"an empty word":         {ParseApprovers, []string{""}, nil, `"" is not one of requester`},
		"members don't approve": {ParseApprovers, []string{"members"}, nil, `"members" is not one of requester`},
		"requesters don't ask":  {ParseRequesters, []string{"requester"}, nil, `"requester" is not one of members`},
		"everyone":              {ParseApprovers, []string{"everyone"}, nil, "is not one of"},
		"star":                  {ParseApprovers, []string{"*"}, nil, "is not one of"},
		"a handle":              {ParseApprovers, []string{"@alice"}, nil, "Copy member ID"},
		"all that is wrong":     {ParseApprovers, []string{"@alice", "U1", "bob", "@carol", "#ops", "bob"}, nil, `"@alice", "bob", "@carol" and "#ops" are not among requester, channel, user ids (U…) or user group ids (S…); a person or group is named by its id, which Slack shows under "Copy member ID" or "Copy group ID"; a certain channel`},
		"a channel's name":      {ParseApprovers, []string{"#ops"}, nil, "the word channel means"},
		"a channel's id":        {ParseApprovers, []string{"C012AB"}, nil, "the word channel means"},
		"lower case":            {ParseApprovers, []string{"u012ab"}, nil, "is not one of"},
		"a mention":             {ParseApprovers, []string{"<@U012AB>"}, nil, "is not one of"},
		"two in one word":       {ParseApprovers, []string{"U1,U2"}, nil, "is not one of"},
		"nothing but a letter":  {ParseApprovers, []string{"U"}, nil, "is not one of"},
		"with a newline":        {ParseApprovers, []string{"U1\nU2"}, nil, "is not one of"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.parse(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, ErrInvalid) || !got.Empty() {
					t.Errorf("got %v, %v; want an error with %q", got, err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got.List()); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// Whatever is accepted can be written down and read again, and lets nobody in who isn't named.
func FuzzParseApprovers(f *testing.F) {
	for _, s := range []string{"requester,channel", "U1,W2,S3", "members", "", ",", "*", "@a", "U1, U1 ", "\xff", "S\u0661"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in := strings.Split(s, ",")
		for _, parse := range []func([]string) (Approvers, error){ParseApprovers, ParseRequesters} {
			a, err := parse(in)
			if err != nil {
				if !a.Empty() || a.requester || a.channel || a.members || len(a.users)+len(a.groups) > 0 {
					t.Fatalf("refused, and yet %+v", a)
				}
				continue
			}
			again, err := parse(strings.Split(a.String(), ","))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(a, again, cmp.AllowUnexported(Approvers{})); diff != "" {
				t.Fatal(diff)
			}
			for _, id := range append(a.users, a.groups...) {
				if !strings.Contains(s, id) {
					t.Fatalf("%q was not named", id)
				}
			}
		}
	})
}
