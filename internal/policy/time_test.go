package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLoadTimes(t *testing.T) {
	f, err := Load("p.yaml", []byte(`rules:
- {name: a, tool: x, effect: ask, timeout: 1h, remind: 25%, escalate: [{after: 10m, approvers: [S0LEADS]}, {after: 30m, approvers: [U0BOSS, S0CHIEFS]}]}
- {name: b, tool: x, effect: ask, remind: 5m}
- {name: c, tool: x, effect: ask, remind: 0%}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []Wanted
	for _, r := range f.Rules.List() {
		got = append(got, r.Wanted)
	}
	want := []Wanted{
		{Timeout: time.Hour, Remind: Remind{Part: 25}, Escalate: []Step{{10 * time.Minute, []string{"S0LEADS"}}, {30 * time.Minute, []string{"U0BOSS", "S0CHIEFS"}}}},
		{Remind: Remind{After: 5 * time.Minute}},
		{Remind: Remind{Never: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):", diff)
	}
}

func TestTimesThatAreWrong(t *testing.T) {
	for rule, want := range map[string]string{
		"remind: soon":                   `remind is "soon": it has to be a part of the time, such as 50% (0%: never), or a duration from 1s to 168h`,
		"remind: 100%":                   `remind is "100%"`,
		"remind: -5%":                    `remind is "-5%"`,
		"remind: 2h, timeout: 1h":        "remind is 2h0m0s, and the time is over after 1h0m0s",
		"escalate: []":                   "escalate is empty",
		"escalate: 10m":                  "escalate has to be a list",
		"escalate: [{approvers: [S0A]}]": "after",
		"escalate: [{after: 1m}]":        "approvers",
		"escalate: [{after: 1m, approvers: [channel]}]":                            "channel can't be escalated to",
		"escalate: [{after: 1m, approvers: [requester]}]":                          "requester can't be escalated to",
		"escalate: [{after: 1m, approvers: [bob]}]":                                `the approver "bob" is not one of`,
		"escalate: [{after: 1m, approvers: []}]":                                   "approvers is empty",
		"escalate: [{after: never, approvers: [S0A]}]":                             `after is "never": it has to be a duration`,
		"escalate: [{after: 1m, approvers: [S0A], to: U0B}]":                       "to",
		"timeout: 1m, escalate: [{after: 1m, approvers: [S0A]}]":                   "a step of escalate comes after 1m0s, and the time is over after 1m0s",
		"escalate: [{after: 2m, approvers: [S0A]}, {after: 2m, approvers: [S0B]}]": "each step has to come later than the one before",
	} {
		_, err := Load("p.yaml", []byte("rules:\n- {name: a, tool: x, effect: ask, "+rule+"}\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", rule, want, err)
		}
	}
	for _, effect := range []string{"allow", "deny"} {
		_, err := Load("p.yaml", []byte("rules:\n- {name: a, tool: x, effect: "+effect+", remind: 50%, escalate: [{after: 1m, approvers: [S0A]}]}\n"))
		if err == nil || !strings.Contains(err.Error(), "remind has no meaning") || !strings.Contains(err.Error(), "escalate has no meaning") {
			t.Errorf("%s: %v", effect, err)
		}
	}
}

// What several rules want to happen while nobody answers.
func TestTimesOfSeveralRules(t *testing.T) {
	m := time.Minute
	for _, c := range []struct {
		name string
		of   []Wanted
		want Wanted
	}{
		{"the earliest reminder of each kind", []Wanted{{Remind: Remind{Part: 50}}, {Remind: Remind{After: 10 * m}}, {Remind: Remind{Part: 20}}, {}},
			Wanted{Remind: Remind{Part: 20, After: 10 * m}}},
		{"never is the latest", []Wanted{{Remind: Remind{Never: true}}, {Remind: Remind{Part: 50}}}, Wanted{Remind: Remind{Part: 50}}},
		{"never, if nobody says otherwise", []Wanted{{Remind: Remind{Never: true}}, {}}, Wanted{Remind: Remind{Never: true}}},
		{"one rule's steps", []Wanted{{Escalate: []Step{{5 * m, []string{"U1"}}}}, {Risk: RiskHigh}},
			Wanted{Risk: RiskHigh, Escalate: []Step{{5 * m, []string{"U1"}}}}},
		{"a rule that lists others only doesn't agree", []Wanted{{Approvers: []string{"U9"}, Escalate: []Step{{5 * m, []string{"U1"}}}}, {Approvers: []string{"U9"}}},
			Wanted{Approvers: []string{"U9"}}},
		{"a rule that has them from the start does", []Wanted{{Approvers: []string{"U9"}, Escalate: []Step{{5 * m, []string{"U1"}}}}, {Approvers: []string{"U9", "U1"}}},
			Wanted{Approvers: []string{"U9"}, Escalate: []Step{{5 * m, []string{"U1"}}}}},
		{"the later of two", []Wanted{{Escalate: []Step{{5 * m, []string{"U1", "U2"}}}}, {Escalate: []Step{{3 * m, []string{"U2"}}, {7 * m, []string{"U1", "U3"}}}}},
			Wanted{Escalate: []Step{{5 * m, []string{"U2"}}, {7 * m, []string{"U1"}}}}},
	} {
		var demands []demand
		for _, w := range c.of {
			demands = append(demands, demand{"it", w})
		}
		got, _ := strictest(demands)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// One more rule never lets anybody approve sooner, whatever it says.
func TestMoreRulesAddNobodySooner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		who := rapid.SampledFrom([]string{"U1", "U2", "U3", "S1"})
		draw := func(label string) demand {
			var w Wanted
			if rapid.Bool().Draw(t, label+" lists") {
				w.Approvers = rapid.SliceOfNDistinct(who, 1, 3, func(s string) string { return s }).Draw(t, label+" approvers")
			}
			at := time.Duration(0)
			for range rapid.IntRange(0, 3).Draw(t, label+" steps") {
				at += time.Duration(rapid.IntRange(1, 9).Draw(t, label+" after")) * time.Minute
				w.Escalate = append(w.Escalate, Step{at, rapid.SliceOfN(who, 1, 2).Draw(t, label+" step")})
			}
			return demand{label, w}
		}
		var demands []demand
		for i := range rapid.IntRange(1, 3).Draw(t, "rules") {
			demands = append(demands, draw(string(rune('a'+i))))
		}
		before, _ := strictest(demands)
		after, _ := strictest(append(demands, draw("more")))
		last := time.Duration(0)
		for _, s := range after.Escalate {
			if s.After <= last {
				t.Fatalf("out of order: %v", after.Escalate)
			}
			last = s.After
			for _, w := range s.Approvers {
				if at, may := from(before, w); (!may || at > s.After) && said(demands) {
					t.Fatalf("%s may approve from %s on, and with fewer rules from %s (%t): %v, %v", w, s.After, at, may, before, after)
				}
			}
		}
	})
}

// from is when somebody may approve.
func from(w Wanted, who string) (time.Duration, bool) {
	for _, a := range w.Approvers {
		if a == who {
			return 0, true
		}
	}
	for _, s := range w.Escalate {
		for _, a := range s.Approvers {
			if a == who {
				return s.After, true
			}
		}
	}
	return 0, false
}

// said tells whether a rule says who may approve.
func said(demands []demand) bool {
	for _, d := range demands {
		if d.want.Approvers != nil || d.want.Escalate != nil {
			return true
		}
	}
	return false
}
