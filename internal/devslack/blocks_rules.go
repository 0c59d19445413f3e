package devslack

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A rule checks one value and returns it as it is stored. Rules report what
// they find to the checker and go on, so that one answer names every problem.
type rule func(c *checker, at string, value any) any

// fields are the members of an object by name.
type fields map[string]rule

// A shape is an object: its members, which of them must be there, and what
// holds between them. A member that isn't listed is a problem.
type shape struct {
	required fields
	optional fields
	// also checks what no single member can say. It runs when the members are
	// known to be present and of the right type.
	also func(c *checker, at string, object map[string]any)
}

func (s shape) rule() rule {
	return func(c *checker, at string, value any) any {
		object, ok := value.(map[string]any)
		if !ok {
			c.problem(at, "must provide an object")
			return value
		}
		before := c.found
		for _, name := range sortedKeys(object) {
			check := s.required[name]
			if check == nil {
				check = s.optional[name]
			}
			if check == nil {
				c.problem(at, "invalid additional property: %s", printable(name))
				continue
			}
			object[name] = check(c, at+"/"+name, object[name])
		}
		for _, name := range sortedKeys(s.required) {
			if _, given := object[name]; !given {
				c.problem(at, "missing required field: %s", name)
			}
		}
		if s.also != nil && c.found == before {
			s.also(c, at, object)
		}
		return object
	}
}

// sortedKeys gives problems an order that doesn't change from run to run.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// str is a string of min to max characters.
func str(min, max int) rule {
	return func(c *checker, at string, value any) any {
		s, ok := value.(string)
		if !ok {
			c.problem(at, "must provide a string")
			return value
		}
		c.length(at, utf8.RuneCountInString(s), min, max)
		return value
	}
}

func (c *checker) length(at string, n, min, max int) {
	if n < min {
		c.problem(at, "must be more than %d characters", min-1)
	}
	if n > max {
		c.problem(at, "must be less than %d characters", max+1)
	}
}

// id is an identifier that the app may leave out or empty.
var id = str(0, 255)

// exactly is a string constant, such as a type.
func exactly(constant string) rule { return oneOf(constant) }

// oneOf is a string of a fixed set.
func oneOf(values ...string) rule {
	return func(c *checker, at string, value any) any {
		s, ok := value.(string)
		if !ok {
			c.problem(at, "must provide a string")
		} else if !slices.Contains(values, s) {
			c.problem(at, "must be a valid enum value: %s", strings.Join(values, ", "))
		}
		return value
	}
}

// matching is a string of a given form; what names it.
func matching(form *regexp.Regexp, what string) rule {
	return func(c *checker, at string, value any) any {
		s, ok := value.(string)
		if !ok {
			c.problem(at, "must provide a string")
		} else if !form.MatchString(s) {
			c.problem(at, "must be a valid %s", what)
		}
		return value
	}
}

// calendar is a date or a time of day in the layout that Slack wants.
func calendar(layout, what string) rule {
	return func(c *checker, at string, value any) any {
		s, ok := value.(string)
		if !ok {
			c.problem(at, "must provide a string")
			return value
		}
		if _, err := time.Parse(layout, s); err != nil || len(s) != len(layout) {
			c.problem(at, "must be a valid %s", what)
		}
		return value
	}
}

// linkTo is a URL with one of the schemes.
func linkTo(max int, schemes ...string) rule {
	return func(c *checker, at string, value any) any {
		s, ok := value.(string)
		if !ok {
			c.problem(at, "must provide a string")
			return value
		}
		u, err := url.Parse(s)
		if err != nil || len(schemes) > 0 && !slices.Contains(schemes, u.Scheme) {
			c.problem(at, "must be a valid url")
		}
		c.length(at, utf8.RuneCountInString(s), 1, max)
		return value
	}
}

// flag is a boolean.
func flag(c *checker, at string, value any) any {
	if _, ok := value.(bool); !ok {
		c.problem(at, "must provide a boolean")
	}
	return value
}

// integer is a whole number from min to max.
func integer(min, max int64) rule {
	return func(c *checker, at string, value any) any {
		number, ok := value.(json.Number)
		if !ok {
			c.problem(at, "must provide an integer")
			return value
		}
		n, err := number.Int64()
		switch {
		case err != nil:
			c.problem(at, "must provide an integer")
		case n < min:
			c.problem(at, "must be greater than or equal to %d", min)
		case n > max:
			c.problem(at, "must be less than or equal to %d", max)
		}
		return value
	}
}

// anyNumber is any JSON number.
func anyNumber(c *checker, at string, value any) any {
	if _, ok := value.(json.Number); !ok {
		c.problem(at, "must provide a number")
	}
	return value
}

// numeral is a number written as a string, as number_input wants it.
var numeral = matching(regexp.MustCompile(`^-?[0-9]{1,50}(\.[0-9]{1,50})?$`), "number")

// list is an array of min to max items.
func list(min, max int, item rule) rule {
	return func(c *checker, at string, value any) any {
		items, ok := value.([]any)
		if !ok {
			c.problem(at, "must provide an array")
			return value
		}
		if len(items) < min {
			c.problem(at, "no less than %d items allowed", min)
		}
		if len(items) > max {
			c.problem(at, "no more than %d items allowed", max)
			return value
		}
		for i := range items {
			items[i] = item(c, at+"/"+strconv.Itoa(i), items[i])
		}
		return items
	}
}

// union is an object whose type member says which of the shapes it is; allowed
// narrows them down.
func union(types map[string]rule, allowed ...string) rule {
	return func(c *checker, at string, value any) any {
		object, kind, ok := c.typed(at, value)
		if !ok {
			return value
		}
		check := types[kind]
		if check == nil || len(allowed) > 0 && !slices.Contains(allowed, kind) {
			c.problem(at+"/type", "unsupported type: %s", printable(kind))
			return value
		}
		return check(c, at, object)
	}
}

// nested are blocks in a block, of the named types.
func nested(min, max int, types ...string) rule {
	return list(min, max, func(c *checker, at string, value any) any {
		return c.block(at, value, types)
	})
}

// deeper guards what may stand in itself.
func deeper(check rule) rule {
	return func(c *checker, at string, value any) any {
		if c.nesting == maxNesting {
			c.problem(at, "must not be nested more than %d levels deep", maxNesting)
			return value
		}
		c.nesting++
		defer func() { c.nesting-- }()
		return check(c, at, value)
	}
}

// elementOf is a block element of one of the named types. Interactive ones get
// their action_id here.
func elementOf(types ...string) rule {
	return func(c *checker, at string, value any) any {
		object, kind, ok := c.typed(at, value)
		if !ok {
			return value
		}
		check := c.elementTypes[kind]
		if check == nil || !slices.Contains(types, kind) || !allowedOn(kind, c.on) {
			c.problem(at+"/type", "unsupported type: %s", printable(kind))
			return value
		}
		if kind != "image" {
			c.fillActionID(at, object)
		}
		return check(c, at, object)
	}
}

// plainText is a plain_text object, anyText one of either kind; both of 1 to
// max characters as they are stored.
func plainText(max int) rule { return text(max, "plain_text") }
func anyText(max int) rule   { return text(max, "plain_text", "mrkdwn") }

func text(max int, kinds ...string) rule {
	content := func(c *checker, at string, object map[string]any, mrkdwn bool) {
		s, ok := object["text"].(string)
		if !ok {
			return // reported by the shape
		}
		stored := escapeText(s, mrkdwn)
		c.length(at+"/text", utf8.RuneCountInString(stored), 1, max)
		object["text"] = stored
	}
	anyString := func(c *checker, at string, value any) any {
		if _, ok := value.(string); !ok {
			c.problem(at, "must provide a string")
		}
		return value
	}
	return union(map[string]rule{
		"plain_text": shape{
			required: fields{"type": exactly("plain_text"), "text": anyString},
			optional: fields{"emoji": flag},
			also: func(c *checker, at string, object map[string]any) {
				content(c, at, object, false)
				setDefault(object, "emoji", true)
			},
		}.rule(),
		"mrkdwn": shape{
			required: fields{"type": exactly("mrkdwn"), "text": anyString},
			optional: fields{"verbatim": flag},
			also: func(c *checker, at string, object map[string]any) {
				content(c, at, object, true)
				setDefault(object, "verbatim", false)
			},
		}.rule(),
	}, kinds...)
}

func setDefault(object map[string]any, name string, value any) {
	if _, given := object[name]; !given {
		object[name] = value
	}
}

// oneOfMembers demands exactly one of the members.
func oneOfMembers(names ...string) func(*checker, string, map[string]any) {
	return func(c *checker, at string, object map[string]any) {
		given := 0
		for _, name := range names {
			if _, ok := object[name]; ok {
				given++
			}
		}
		if given != 1 {
			c.problem(at, "must define exactly one of: %s", strings.Join(names, ", "))
		}
	}
}

// someMember demands at least one of the members.
func someMember(names ...string) func(*checker, string, map[string]any) {
	return func(c *checker, at string, object map[string]any) {
		for _, name := range names {
			if _, ok := object[name]; ok {
				return
			}
		}
		c.problem(at, "must define at least one of: %s", strings.Join(names, ", "))
	}
}

// all joins checks of a whole object.
func all(checks ...func(*checker, string, map[string]any)) func(*checker, string, map[string]any) {
	return func(c *checker, at string, object map[string]any) {
		for _, check := range checks {
			check(c, at, object)
		}
	}
}
