package devslack

import "regexp"

var (
	mentionMarkup = regexp.MustCompile(`<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>|<!subteam\^([A-Z0-9]+)(?:\|[^<>]*)?>`)
	mentionInRich = regexp.MustCompile(`"(?:user_id|usergroup_id)":"([A-Z0-9]+)"`)
)

// mentioned lists the people whom a message mentions, by name or by group: for
// them a client marks it as theirs.
func (s *Server) mentioned(m *Message) []string {
	seen := map[string]bool{}
	out := []string{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	name := func(id string) {
		if g := s.ws.group(id); g != nil {
			for _, u := range g.Users {
				add(u)
			}
		} else if s.ws.user(id) != nil {
			add(id)
		}
	}
	for _, text := range []string{m.Text, string(m.Blocks)} {
		for _, found := range mentionMarkup.FindAllStringSubmatch(text, -1) {
			name(found[1] + found[2])
		}
	}
	for _, found := range mentionInRich.FindAllStringSubmatch(string(m.Blocks), -1) {
		name(found[1])
	}
	return out
}
