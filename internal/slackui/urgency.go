package slackui

import (
	"slices"
	"time"

	"github.com/slack-go/slack"

	"approvalbot/internal/ledger"
)

// urgency says on a card what happened while nobody answered: who was reminded, who was added, how the deadline was
// moved; nil if there is nothing to say.
func (v *renderer) urgency(a *ledger.Approval) []slack.RichTextElement {
	p := v.phrase()
	apart := func() {
		if len(p.elements) > 0 {
			p.say(" · ")
		}
	}
	if len(a.Reminded) > 0 {
		p.form("*Reminded:* {when}", slots{"when": func(p *phrase) { p.moments(a) }})
	}
	for _, e := range a.Escalated {
		apart()
		p.form("{who} may approve, too, since {when}", slots{
			"who": func(p *phrase) { p.listed(a, e.Approvers) }, "when": func(p *phrase) { p.clock(a, e.At) },
		})
	}
	if n := len(a.Extended); n > 0 {
		apart()
		last := a.Extended[n-1]
		p.form("{who} moved the deadline to {until}", slots{
			"who": func(p *phrase) { p.who(last.By) }, "until": func(p *phrase) { p.until(a, last.Until) },
		})
		if !a.Extensible() {
			p.say(v.t(", the latest there can be"))
		}
	}
	if len(p.elements) == 0 {
		return nil
	}
	return []slack.RichTextElement{paragraph(p.elements...)}
}

// moments are the times of reminders.
func (p *phrase) moments(a *ledger.Approval) {
	for i, r := range a.Reminded {
		if i > 0 {
			p.say(p.v.t(", "))
		}
		p.clock(a, r.At)
	}
}

// aDay is how long people may have for a moment of theirs to be told without its date.
const aDay = 12 * time.Hour

// clock adds a moment in an ask's life: the time alone, where the day is plain.
func (p *phrase) clock(a *ledger.Approval, t time.Time) {
	if a.Timeout+a.MoreTime > aDay {
		p.at(t)
		return
	}
	fallback := utc(t)
	p.elements = append(p.elements, slack.NewRichTextSectionDateElement(t.Unix(), "{time}", nil, &fallback))
	p.plain.WriteString(fallback)
}

// until adds a deadline, as exactly as the card says it.
func (p *phrase) until(a *ledger.Approval, t time.Time) {
	if a.Timeout <= 0 || a.Timeout >= briefly {
		p.at(t)
		return
	}
	p.atSecond(t)
}

// listed mentions those whom a list of approvers names, each once. It says nothing of what is no person and no group.
func (p *phrase) listed(a *ledger.Approval, words []string) {
	var all []element
	for _, word := range words {
		switch {
		case word == "requester":
			for _, r := range a.Requesters {
				if userID.MatchString(r.ID) && !slices.Contains(words, r.ID) {
					all = append(all, slack.NewRichTextSectionUserElement(r.ID, nil))
				}
			}
		case userID.MatchString(word):
			all = append(all, slack.NewRichTextSectionUserElement(word, nil))
		case groupID.MatchString(word):
			all = append(all, slack.NewRichTextSectionUserGroupElement(word))
		}
	}
	if left := len(all) - maxMentions; left > 0 {
		all = append(all[:maxMentions], text(p.v.tf("%d more", left)))
	}
	for i, e := range all {
		if i > 0 {
			p.elements = append(p.elements, text(p.v.between(i, len(all))))
		}
		p.elements = append(p.elements, e)
	}
}

// between is what stands before the i-th of n things in a list, in the language of the workspace.
func (v *renderer) between(i, n int) string {
	if i == n-1 {
		return v.t(" and ")
	}
	return v.t(", ")
}
