package devslack

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// A surface is where blocks are shown: what is allowed there, and how much of
// it, differs.
type surface int

const (
	surfaceMessage surface = iota
	surfaceModal
	surfaceHome
)

// maxBlocks is the number of blocks that one message, or one view, may hold.
func (s surface) maxBlocks() int {
	if s == surfaceMessage {
		return 50
	}
	return 100
}

// A problem says what is wrong with one value and where it stands. A reply
// shows it as "[ERROR] Message [json-pointer:Pointer]".
type problem struct {
	Pointer string // a JSON pointer such as /blocks/0/text/text
	Message string // in Slack's tone: "must be less than 3001 characters"
}

func (p problem) String() string {
	return fmt.Sprintf("[ERROR] %s [json-pointer:%s]", p.Message, p.Pointer)
}

const (
	// maxBlocksSize is where a message's blocks become too long as a whole.
	// Slack documents no number; people who looked for it found the edge
	// between 13,200 and 13,300 characters of JSON.
	maxBlocksSize = 13_200

	// maxMarkdown is what all markdown blocks of a payload may hold together.
	maxMarkdown = 12_000

	// maxNesting is how deep containers and layouts may stand in each other.
	maxNesting = 2

	// maxProblems bounds an answer. A reader never gets past the first few, and
	// a table of a hundred bad rows must not become a megabyte of errors.
	maxProblems = 50
)

// checkBlocks validates the blocks of a message, modal or Home tab as Slack
// does. The blocks that it returns are as Slack stores them: block_id and
// action_id filled in where they were missing, the defaults of text objects
// written out, and &, < and > escaped in them. With problems it returns nil.
func checkBlocks(raw json.RawMessage, on surface) (normalized json.RawMessage, problems []problem) {
	value, ok := decodeJSON(raw)
	if !ok {
		return nil, []problem{{"/blocks", "must be valid JSON"}}
	}
	c := newChecker(on)
	value = c.blocks("/blocks", value)
	return c.result(value)
}

// checkView validates a modal or a Home tab. Pointers begin with /view.
func checkView(raw json.RawMessage) (normalized json.RawMessage, problems []problem) {
	value, ok := decodeJSON(raw)
	if !ok {
		return nil, []problem{{"/view", "must be valid JSON"}}
	}
	c := newChecker(surfaceModal)
	value = union(viewTypes, "modal", "home")(c, "/view", value)
	return c.result(value)
}

// blocksTooLong reports whether valid blocks are, as a whole, more than a
// message takes: the server then answers msg_blocks_too_long.
func blocksTooLong(normalized json.RawMessage) bool {
	return utf8.RuneCount(normalized) > maxBlocksSize
}

// decodeJSON reads exactly one JSON value. Numbers keep their digits.
func decodeJSON(raw json.RawMessage) (any, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, false
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, false
	}
	return value, true
}

// A checker walks one payload. It holds what can only be judged over all of
// it: ids that must be unique, sums, things that may occur once.
type checker struct {
	on       surface
	problems []problem
	found    int // problems found; the first maxProblems of them are kept

	blockTypes   map[string]rule
	elementTypes map[string]rule

	blockIDs map[string]bool
	// actions holds the action_ids of the block that is being checked: they
	// must be unique only there.
	actions  map[string]bool
	markdown int // characters in markdown blocks so far
	tables   int
	focused  int // elements with focus_on_load
	inputs   int // input blocks
	nesting  int // containers and layouts around the value
}

// The tables are built when the first payload is checked, and then only read.
var (
	blockTable   = sync.OnceValue(blockTypes)
	elementTable = sync.OnceValue(elementTypes)
)

func newChecker(on surface) *checker {
	return &checker{
		on:           on,
		blockTypes:   blockTable(),
		elementTypes: elementTable(),
		blockIDs:     map[string]bool{},
		actions:      map[string]bool{},
	}
}

func (c *checker) result(value any) (json.RawMessage, []problem) {
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return encode(value), nil
}

func (c *checker) problem(at, format string, args ...any) {
	c.found++
	if c.found <= maxProblems {
		c.problems = append(c.problems, problem{at, fmt.Sprintf(format, args...)})
	}
}

// blocks checks a top-level list of blocks.
func (c *checker) blocks(at string, value any) any {
	items, ok := value.([]any)
	if !ok {
		c.problem(at, "must provide an array")
		return value
	}
	// Ids that were given are known before any is made up, so that a made-up
	// one can't take the name of a block further down.
	c.reserveBlockIDs(items)
	if len(items) > c.on.maxBlocks() {
		c.problem(at, "no more than %d items allowed", c.on.maxBlocks())
		return value
	}
	for i, item := range items {
		items[i] = c.block(at+"/"+strconv.Itoa(i), item, nil)
	}
	return items
}

// reserveBlockIDs marks the given ids as used but not yet seen.
func (c *checker) reserveBlockIDs(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			c.reserveBlockIDs(item)
		}
	case map[string]any:
		if id, ok := v["block_id"].(string); ok {
			c.blockIDs[id] = false
		}
		for _, member := range v {
			c.reserveBlockIDs(member)
		}
	}
}

// block checks one block; allowed names the types that may stand there, nil
// stands for all of the surface.
func (c *checker) block(at string, value any, allowed []string) any {
	object, kind, ok := c.typed(at, value)
	if !ok {
		return value
	}
	check, known := c.blockTypes[kind]
	if !known || allowed != nil && !slices.Contains(allowed, kind) || !allowedOn(kind, c.on) {
		c.problem(at+"/type", "unsupported type: %s", printable(kind))
		return value
	}
	// Blocks stand in blocks (a container's children), and each has its own
	// set of action ids.
	outer := c.actions
	c.actions = map[string]bool{}
	defer func() { c.actions = outer }()

	c.fillBlockID(at, object)
	return check(c, at, object)
}

func (c *checker) fillBlockID(at string, block map[string]any) {
	value, given := block["block_id"]
	id, isString := value.(string)
	switch {
	case !given || isString && id == "":
		block["block_id"] = c.freshID(c.blockIDs)
	case isString && c.blockIDs[id]:
		c.problem(at+"/block_id", "`block_id` %s already exists", printable(id))
	case isString:
		c.blockIDs[id] = true
	}
}

// fillActionID gives an interactive element its action_id and keeps it unique
// within its block.
func (c *checker) fillActionID(at string, element map[string]any) {
	value, given := element["action_id"]
	id, isString := value.(string)
	switch {
	case !given || isString && id == "":
		element["action_id"] = c.freshID(c.actions)
	case isString && c.actions[id]:
		c.problem(at+"/action_id", "`action_id` %s already exists in this block", printable(id))
	case isString:
		c.actions[id] = true
	}
}

// freshID makes up an id as short as Slack's and marks it as seen.
func (c *checker) freshID(used map[string]bool) string {
	for {
		id := rand.Text()[:5]
		if _, taken := used[id]; !taken {
			used[id] = true
			return id
		}
	}
}

// typed returns an object and its type member.
func (c *checker) typed(at string, value any) (map[string]any, string, bool) {
	object, ok := value.(map[string]any)
	if !ok {
		c.problem(at, "must provide an object")
		return nil, "", false
	}
	kind, given := object["type"]
	if !given {
		c.problem(at, "missing required field: type")
		return nil, "", false
	}
	name, ok := kind.(string)
	if !ok {
		c.problem(at+"/type", "must provide a string")
		return nil, "", false
	}
	return object, name, true
}

// printable shortens a value from the payload for a message, by characters.
func printable(s string) string {
	const most = 60
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// token matches what is not escaped in mrkdwn: mentions, dates and links.
var token = regexp.MustCompile(`^<(?:@[UW][A-Z0-9]+|#C[A-Z0-9]+|![^<>]+|(?:https?|mailto|tel|slack|ftp):[^<>]+)(?:\|[^<>]*)?>`)

// escapeText returns a text as Slack stores it. Entities that are already
// there stay, so that escaping twice changes nothing; in mrkdwn so do tokens.
func escapeText(s string, mrkdwn bool) string {
	if !strings.ContainsAny(s, "&<>") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexAny(s, "&<>")
		if i < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:i])
		kept, rest := escapeOne(s[i:], mrkdwn)
		b.WriteString(kept)
		s = rest
	}
	return b.String()
}

// escapeOne escapes the special character that s begins with.
func escapeOne(s string, mrkdwn bool) (escaped, rest string) {
	switch s[0] {
	case '&':
		for _, entity := range []string{"&amp;", "&lt;", "&gt;"} {
			if strings.HasPrefix(s, entity) {
				return entity, s[len(entity):]
			}
		}
		return "&amp;", s[1:]
	case '<':
		if mrkdwn {
			if t := token.FindString(s); t != "" {
				return t, s[len(t):]
			}
		}
		return "&lt;", s[1:]
	default:
		return "&gt;", s[1:]
	}
}
