package devslack

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"pgregory.net/rapid"
)

// x is n characters.
func x(n int) string { return strings.Repeat("x", n) }

// plain and mrkdwn are text objects in JSON.
func plain(s string) string  { return `{"type":"plain_text","text":` + quote(s) + `}` }
func mrkdwn(s string) string { return `{"type":"mrkdwn","text":` + quote(s) + `}` }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// repeat is a JSON list of n items; %d in item is the index.
func repeat(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(item, "%d", fmt.Sprint(i))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func richText(elements string) string {
	return `{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + elements + `]}]}`
}

func TestBlocksAccepted(t *testing.T) {
	button := `{"type":"button","text":` + plain("Go") + `,"action_id":"a%d"}`
	for name, block := range map[string]string{
		"section text at its limit":    `{"type":"section","text":` + mrkdwn(x(3000)) + `}`,
		"section fields":               `{"type":"section","fields":` + repeat(10, mrkdwn(x(2000))) + `}`,
		"section with button":          `{"type":"section","text":` + plain("x") + `,"accessory":` + button + `}`,
		"characters, not bytes":        `{"type":"header","text":` + plain(strings.Repeat("é", 150)) + `}`,
		"emoji are one character each": `{"type":"header","text":` + plain(strings.Repeat("😀", 150)) + `}`,
		"header level":                 `{"type":"header","text":` + plain("x") + `,"level":4}`,
		"divider":                      `{"type":"divider"}`,
		"actions, 25":                  `{"type":"actions","elements":` + repeat(25, button) + `}`,
		"button with all":              `{"type":"actions","elements":[{"type":"button","text":` + plain(x(75)) + `,"value":"` + x(2000) + `","url":"https://example.com","style":"danger","accessibility_label":"` + x(75) + `","confirm":{"title":` + plain(x(100)) + `,"text":` + mrkdwn(x(300)) + `,"confirm":` + plain(x(30)) + `,"deny":` + plain(x(30)) + `,"style":"danger"}}]}`,
		"context":                      `{"type":"context","elements":[` + mrkdwn("x") + `,{"type":"image","image_url":"https://example.com/a.png","alt_text":"a"}]}`,
		"context actions":              `{"type":"context_actions","elements":[{"type":"feedback_buttons","positive_button":{"text":` + plain("+") + `,"value":"p"},"negative_button":{"text":` + plain("-") + `,"value":"n"}},{"type":"icon_button","icon":"trash","text":` + plain("x") + `}]}`,
		"rich text":                    richText(`{"type":"text","text":"a","style":{"bold":true,"code":true}},{"type":"user","user_id":"U1"},{"type":"usergroup","usergroup_id":"S1"},{"type":"channel","channel_id":"C1"},{"type":"broadcast","range":"here"},{"type":"emoji","name":"wave"},{"type":"date","timestamp":1720710212,"format":"{date} at {time}","fallback":"x"},{"type":"color","value":"#F405B3"},{"type":"link","url":"https://example.com","text":"x"}`),
		"rich text without a 3000 cap": richText(`{"type":"text","text":"` + x(9000) + `"}`),
		"rich list, quote, code":       `{"type":"rich_text","elements":[{"type":"rich_text_list","style":"ordered","indent":1,"offset":2,"border":0,"elements":[{"type":"rich_text_section","elements":[]}]},{"type":"rich_text_quote","elements":[{"type":"text","text":"q"}]},{"type":"rich_text_preformatted","border":0,"language":"shell","elements":[{"type":"text","text":"<!channel> & co"}]}]}`,
		"image":                        `{"type":"image","image_url":"https://example.com/a.png","alt_text":"a","title":` + plain("t") + `}`,
		"input in a message":           `{"type":"input","label":` + plain("l") + `,"element":{"type":"plain_text_input","multiline":true,"min_length":1,"max_length":3000}}`,
		"select":                       `{"type":"actions","elements":[{"type":"static_select","placeholder":` + plain("p") + `,"options":[{"text":` + plain("R&D") + `,"value":"1"}],"initial_option":{"text":` + plain("R&D") + `,"value":"1"}}]}`,
		"checkboxes":                   `{"type":"actions","elements":[{"type":"checkboxes","options":[{"text":` + mrkdwn("*a*") + `,"value":"1","description":` + mrkdwn("b") + `}]}]}`,
		"table":                        `{"type":"table","column_settings":[{"align":"right","is_wrapped":true},null],"rows":[[{"type":"raw_text","text":"a"},` + richText(`{"type":"text","text":"b"}`) + `]]}`,
		"plan":                         `{"type":"plan","title":"Working","tasks":[{"type":"task_card","task_id":"1","title":"t","status":"in_progress","details":` + richText(`{"type":"text","text":"d"}`) + `,"sources":[{"type":"url","url":"https://example.com","text":"s"}]},{"type":"task_card","task_id":"2","title":"t","status":"error"}]}`,
		"markdown":                     `{"type":"markdown","text":"` + x(12000) + `"}`,
		"card":                         `{"type":"card","title":` + mrkdwn("t") + `,"body":` + mrkdwn("b") + `,"actions":` + repeat(3, button) + `}`,
		"carousel":                     `{"type":"carousel","elements":` + repeat(10, `{"type":"card","title":`+plain("t")+`}`) + `}`,
		"container":                    `{"type":"container","title":` + plain("t") + `,"is_collapsible":true,"default_collapsed":true,"child_blocks":[{"type":"divider"},{"type":"actions","elements":` + repeat(2, button) + `}]}`,
		"video":                        `{"type":"video","alt_text":"a","title":` + plain("t") + `,"thumbnail_url":"https://example.com/t","video_url":"https://example.com/v"}`,
	} {
		t.Run(name, func(t *testing.T) {
			stored, problems := checkBlocks(json.RawMessage("["+block+"]"), surfaceMessage)
			if len(problems) > 0 {
				t.Fatalf("refused: %v", problems)
			}
			again, problems := checkBlocks(stored, surfaceMessage)
			if len(problems) > 0 || !cmp.Equal(again, stored) {
				t.Errorf("what is stored doesn't check clean: %v\n%s", problems, cmp.Diff(string(stored), string(again)))
			}
		})
	}
}

func TestBlocksRefused(t *testing.T) {
	button := func(members string) string {
		return `[{"type":"actions","elements":[{"type":"button","text":` + plain("Go") + members + `}]}]`
	}
	for name, test := range map[string]struct {
		blocks string
		want   problem
	}{
		"not JSON":             {`[{]`, problem{"/blocks", "must be valid JSON"}},
		"two values":           {`[] []`, problem{"/blocks", "must be valid JSON"}},
		"null":                 {`null`, problem{"/blocks", "must provide an array"}},
		"an object":            {`{}`, problem{"/blocks", "must provide an array"}},
		"a string for a block": {`["x"]`, problem{"/blocks/0", "must provide an object"}},
		"no type":              {`[{}]`, problem{"/blocks/0", "missing required field: type"}},
		"unknown type":         {`[{"type":"nonsense"}]`, problem{"/blocks/0/type", "unsupported type: nonsense"}},
		"51 blocks":            {repeat(51, `{"type":"divider"}`), problem{"/blocks", "no more than 50 items allowed"}},
		"extra field":          {`[{"type":"divider","colour":"red"}]`, problem{"/blocks/0", "invalid additional property: colour"}},
		"section empty":        {`[{"type":"section"}]`, problem{"/blocks/0", "must define at least one of: text, fields"}},
		"section too long":     {`[{"type":"section","text":` + mrkdwn(x(3001)) + `}]`, problem{"/blocks/0/text/text", "must be less than 3001 characters"}},
		"escaped too long":     {`[{"type":"section","text":` + mrkdwn(x(2996)+"&") + `}]`, problem{"/blocks/0/text/text", "must be less than 3001 characters"}},
		"empty text":           {`[{"type":"section","text":` + mrkdwn("") + `}]`, problem{"/blocks/0/text/text", "must be more than 0 characters"}},
		"text as string":       {`[{"type":"section","text":"x"}]`, problem{"/blocks/0/text", "must provide an object"}},
		"text as number":       {`[{"type":"section","text":{"type":"mrkdwn","text":1}}]`, problem{"/blocks/0/text/text", "must provide a string"}},
		"emoji in mrkdwn":      {`[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`, problem{"/blocks/0/text", "invalid additional property: emoji"}},
		"11 fields":            {`[{"type":"section","fields":` + repeat(11, mrkdwn("x")) + `}]`, problem{"/blocks/0/fields", "no more than 10 items allowed"}},
		"long field":           {`[{"type":"section","fields":[` + plain(x(2001)) + `]}]`, problem{"/blocks/0/fields/0/text", "must be less than 2001 characters"}},
		"mrkdwn header":        {`[{"type":"header","text":` + mrkdwn("x") + `}]`, problem{"/blocks/0/text/type", "unsupported type: mrkdwn"}},
		"long header":          {`[{"type":"header","text":` + plain(x(151)) + `}]`, problem{"/blocks/0/text/text", "must be less than 151 characters"}},
		"no elements":          {`[{"type":"actions","elements":[]}]`, problem{"/blocks/0/elements", "no less than 1 items allowed"}},
		"26 elements":          {`[{"type":"actions","elements":` + repeat(26, `{"type":"button","text":`+plain("x")+`}`) + `}]`, problem{"/blocks/0/elements", "no more than 25 items allowed"}},
		"button without text":  {`[{"type":"actions","elements":[{"type":"button"}]}]`, problem{"/blocks/0/elements/0", "missing required field: text"}},
		"long value":           {button(`,"value":"` + x(2001) + `"`), problem{"/blocks/0/elements/0/value", "must be less than 2001 characters"}},
		"value as number":      {button(`,"value":7`), problem{"/blocks/0/elements/0/value", "must provide a string"}},
		"style":                {button(`,"style":"green"`), problem{"/blocks/0/elements/0/style", "must be a valid enum value: primary, danger"}},
		"script url":           {button(`,"url":"javascript:alert(1)"`), problem{"/blocks/0/elements/0/url", "must be a valid url"}},
		"long action_id":       {button(`,"action_id":"` + x(256) + `"`), problem{"/blocks/0/elements/0/action_id", "must be less than 256 characters"}},
		"long button":          {`[{"type":"actions","elements":[{"type":"button","text":` + plain(x(76)) + `}]}]`, problem{"/blocks/0/elements/0/text/text", "must be less than 76 characters"}},
		"image in actions":     {`[{"type":"actions","elements":[{"type":"image","image_url":"https://x.example","alt_text":"a"}]}]`, problem{"/blocks/0/elements/0/type", "unsupported type: image"}},
		"same block_id":        {`[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`, problem{"/blocks/1/block_id", "`block_id` a already exists"}},
		"same action_id":       {`[{"type":"actions","elements":` + repeat(2, `{"type":"button","action_id":"a","text":`+plain("x")+`}`) + `}]`, problem{"/blocks/0/elements/1/action_id", "`action_id` a already exists in this block"}},
		"two pictures":         {`[{"type":"image","alt_text":"a","image_url":"https://x.example","slack_file":{"id":"F1"}}]`, problem{"/blocks/0", "must define exactly one of: image_url, slack_file"}},
		"empty rich text":      {`[` + richText(`{"type":"text","text":""}`) + `]`, problem{"/blocks/0/elements/0/elements/0/text", "must be more than 0 characters"}},
		"user in code":         {`[{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"user","user_id":"U1"}]}]}]`, problem{"/blocks/0/elements/0/elements/0/type", "unsupported type: user"}},
		"alert in message":     {`[{"type":"alert","text":` + plain("x") + `}]`, problem{"/blocks/0/type", "unsupported type: alert"}},
		"two tables":           {repeat(2, `{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]}`), problem{"/blocks/1", "only one table is allowed per message"}},
		"markdown in sum":      {repeat(2, `{"type":"markdown","text":"`+x(6001)+`"}`), problem{"/blocks/1/text", "all markdown blocks together must be less than 12001 characters"}},
		"same task_id":         {`[{"type":"plan","title":"p","tasks":` + repeat(2, `{"type":"task_card","task_id":"1","title":"t"}`) + `}]`, problem{"/blocks/0/tasks/1/task_id", "`task_id` must be unique in a plan"}},
		"task status":          {`[{"type":"task_card","task_id":"1","title":"t","status":"done"}]`, problem{"/blocks/0/status", "must be a valid enum value: pending, in_progress, complete, error"}},
		"initial option":       {`[{"type":"actions","elements":[{"type":"static_select","options":[{"text":` + plain("a") + `,"value":"1"}],"initial_option":{"text":` + plain("b") + `,"value":"1"}}]}]`, problem{"/blocks/0/elements/0/initial_option", "must exactly match one of the options"}},
		"echoed image":         {`[{"type":"image","alt_text":"a","image_url":"https://x.example","image_width":10}]`, problem{"/blocks/0", "invalid additional property: image_width"}},
		"bad date":             {`[{"type":"actions","elements":[{"type":"datepicker","initial_date":"2024-02-30"}]}]`, problem{"/blocks/0/elements/0/initial_date", "must be a valid date"}},
	} {
		t.Run(name, func(t *testing.T) {
			stored, problems := checkBlocks(json.RawMessage(test.blocks), surfaceMessage)
			if diff := cmp.Diff([]problem{test.want}, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if stored != nil {
				t.Errorf("refused blocks came back: %s", stored)
			}
		})
	}
}

func TestBlocksAsStored(t *testing.T) {
	in := `[{"type":"section","block_id":"b","text":{"type":"mrkdwn","text":"a < b & c &amp; <@U1> <https://x.example|l> <img onerror=x> <!channel>"}},` +
		`{"type":"header","block_id":"h","text":{"type":"plain_text","text":"<@U1> &lt;","emoji":false}}]`
	want := `[{"block_id":"b","text":{"text":"a &lt; b &amp; c &amp; <@U1> <https://x.example|l> &lt;img onerror=x&gt; <!channel>","type":"mrkdwn","verbatim":false},"type":"section"},` +
		`{"block_id":"h","text":{"emoji":false,"text":"&lt;@U1&gt; &lt;","type":"plain_text"},"type":"header"}]`
	got, problems := checkBlocks(json.RawMessage(in), surfaceMessage)
	if diff := cmp.Diff(want, string(got)); diff != "" || problems != nil {
		t.Errorf("stored (-want +got), problems %v:\n%s", problems, diff)
	}
}

func TestMissingIDsAreFilledIn(t *testing.T) {
	got, problems := checkBlocks(json.RawMessage(`[{"type":"divider"},{"type":"actions","block_id":"","elements":[{"type":"button","text":`+plain("x")+`}]}]`), surfaceMessage)
	if problems != nil {
		t.Fatal(problems)
	}
	var blocks []struct {
		BlockID  string `json:"block_id"`
		Elements []struct {
			ActionID string `json:"action_id"`
		}
	}
	if err := json.Unmarshal(got, &blocks); err != nil {
		t.Fatal(err)
	}
	if blocks[0].BlockID == "" || blocks[1].BlockID == "" || blocks[0].BlockID == blocks[1].BlockID {
		t.Errorf("block ids %q and %q", blocks[0].BlockID, blocks[1].BlockID)
	}
	if blocks[1].Elements[0].ActionID == "" {
		t.Error("no action id")
	}
}

func TestViews(t *testing.T) {
	modal := func(members string) string { return `{"type":"modal","title":` + plain("t") + members + `}` }
	input := `{"type":"input","label":` + plain("l") + `,"element":{"type":"plain_text_input"}}`
	for name, test := range map[string]struct {
		view string
		want []problem
	}{
		"plain":             {modal(`,"blocks":[]`), nil},
		"with input":        {modal(`,"submit":` + plain("s") + `,"blocks":[` + input + `]`), nil},
		"alert":             {modal(`,"blocks":[{"type":"alert","level":"warning","text":` + plain("x") + `}]`), nil},
		"100 blocks":        {modal(`,"blocks":` + repeat(100, `{"type":"divider"}`)), nil},
		"home":              {`{"type":"home","blocks":[{"type":"divider"}]}`, nil},
		"101 blocks":        {modal(`,"blocks":` + repeat(101, `{"type":"divider"}`)), []problem{{"/view/blocks", "no more than 100 items allowed"}}},
		"input, no submit":  {modal(`,"blocks":[` + input + `]`), []problem{{"/view", "missing required field: submit (the view has input blocks)"}}},
		"null blocks":       {modal(`,"blocks":null`), []problem{{"/view/blocks", "must provide an array"}}},
		"no blocks":         {modal(``), []problem{{"/view", "missing required field: blocks"}}},
		"long title":        {`{"type":"modal","title":` + plain(x(25)) + `,"blocks":[]}`, []problem{{"/view/title/text", "must be less than 25 characters"}}},
		"long metadata":     {modal(`,"blocks":[],"private_metadata":"` + x(3001) + `"`), []problem{{"/view/private_metadata", "must be less than 3001 characters"}}},
		"long callback":     {modal(`,"blocks":[],"callback_id":"` + x(256) + `"`), []problem{{"/view/callback_id", "must be less than 256 characters"}}},
		"unknown kind":      {`{"type":"panel"}`, []problem{{"/view/type", "unsupported type: panel"}}},
		"home has no title": {`{"type":"home","blocks":[],"title":` + plain("t") + `}`, []problem{{"/view", "invalid additional property: title"}}},
		"table in modal":    {modal(`,"blocks":[{"type":"table","rows":[[{"type":"raw_text","text":"a"}]]}]`), []problem{{"/view/blocks/0/type", "unsupported type: table"}}},
		"two focused": {modal(`,"submit":` + plain("s") + `,"blocks":` + repeat(2, `{"type":"input","label":`+plain("l")+`,"element":{"type":"plain_text_input","focus_on_load":true}}`)),
			[]problem{{"/view/blocks/1/element/focus_on_load", "only one element can be focused on load"}}},
	} {
		t.Run(name, func(t *testing.T) {
			stored, problems := checkView(json.RawMessage(test.view))
			if diff := cmp.Diff(test.want, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if again, problems := checkView(stored); stored != nil && (problems != nil || !cmp.Equal(again, stored)) {
				t.Errorf("what is stored doesn't check clean: %v", problems)
			}
		})
	}
}

func TestNestingEnds(t *testing.T) {
	block := `{"type":"divider"}`
	for range 1000 { // as deep as encoding/json reads
		block = `{"type":"container","title":` + plain("t") + `,"child_blocks":[{"type":"layout","label":"l","rows":[{"items":[{"block":` + block + `}]}]}]}`
	}
	_, problems := checkBlocks(json.RawMessage("["+block+"]"), surfaceMessage)
	want := []problem{{"/blocks/0/child_blocks/0/rows/0/items/0/block/child_blocks", "must not be nested more than 2 levels deep"}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestProblemsAreBounded(t *testing.T) {
	rows := repeat(100, repeat(20, `{"type":"raw_text"}`))
	// Plans after it make the checks between members run on broken members.
	blocks := `[{"type":"table","rows":` + rows + `},{"type":"plan","title":"p","tasks":[1,2]}]`
	if _, problems := checkBlocks(json.RawMessage(blocks), surfaceMessage); len(problems) != maxProblems {
		t.Errorf("%d problems, want %d", len(problems), maxProblems)
	}
}

func TestBlocksTooLong(t *testing.T) {
	four := repeat(4, `{"type":"section","text":`+mrkdwn(x(3000))+`}`)
	five := repeat(5, `{"type":"section","text":`+mrkdwn(x(3000))+`}`)
	for blocks, want := range map[string]bool{four: false, five: true} {
		stored, problems := checkBlocks(json.RawMessage(blocks), surfaceMessage)
		if problems != nil {
			t.Fatal(problems)
		}
		if got := blocksTooLong(stored); got != want {
			t.Errorf("%d characters: too long %t, want %t", utf8.RuneCount(stored), got, want)
		}
	}
}

// Blocks that slack-go builds must pass, field by field as it writes them.
func TestBlocksOfSlackGo(t *testing.T) {
	text := slack.NewTextBlockObject("plain_text", "Approve", false, false)
	approve := slack.NewButtonBlockElement("approve", "id", text)
	approve.Style = slack.StylePrimary
	approve.Confirm = slack.NewConfirmationBlockObject(text, text, text, text)
	code := &slack.RichTextPreformatted{Type: slack.RTEPreformatted, Elements: []slack.RichTextSectionElement{
		slack.NewRichTextSectionTextElement("rm -rf <dir> && echo `x`", nil)}}
	details := slack.NewRichTextBlock("", slack.NewRichTextSection(slack.NewRichTextSectionTextElement("d", nil)))
	table := slack.NewTableBlock("t").WithColumnSettings(slack.ColumnSetting{Align: slack.ColumnAlignmentLeft})
	table.AddRow(slack.NewTableRawTextCell("a"), slack.NewTableRawTextCell("b"))
	blocks := []slack.Block{
		slack.NewHeaderBlock(text),
		slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", "*x*", false, true), nil, slack.NewAccessory(approve)),
		slack.NewRichTextBlock("code", code,
			slack.NewRichTextList(slack.RTEListBullet, 0, slack.NewRichTextSection(slack.NewRichTextSectionUserElement("U1", nil))),
			slack.NewRichTextSection(slack.NewRichTextSectionDateElement(1720710212, "{date_short}", nil, nil))),
		slack.NewContextBlock("", text),
		slack.NewActionBlock("actions", approve, slack.NewOverflowBlockElement("more", slack.NewOptionBlockObject("v", text, nil))),
		slack.NewPlanBlock("Plan").WithTasks(slack.NewTaskCardBlock("1", "Task").WithStatus(slack.TaskCardStatusError).WithDetails(details)),
		slack.NewDividerBlock(), table,
		slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement("f",
			slack.NewFeedbackButton(text, "+"), slack.NewFeedbackButton(text, "-"))),
		slack.NewMarkdownBlock("", "# hi"),
	}
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	stored, problems := checkBlocks(raw, surfaceMessage)
	if problems != nil {
		t.Fatalf("refused: %v\n%s", problems, raw)
	}
	var back slack.Blocks
	if err := json.Unmarshal(stored, &back); err != nil {
		t.Fatalf("slack-go can't read what is stored: %v", err)
	}
	for _, block := range back.BlockSet {
		if _, unknown := block.(*slack.UnknownBlock); unknown || block.ID() == "" {
			t.Errorf("slack-go reads %T with id %q", block, block.ID())
		}
	}
}

func TestViewOfSlackGo(t *testing.T) {
	text := slack.NewTextBlockObject("plain_text", "Why not?", false, false)
	view := slack.ModalViewRequest{
		Type: slack.VTModal, Title: text, Submit: text, Close: text, CallbackID: "deny", NotifyOnClose: true,
		Blocks: slack.Blocks{BlockSet: []slack.Block{
			slack.NewInputBlock("reason", text, nil, slack.NewPlainTextInputBlockElement(text, "reason").WithMultiline(true)),
			slack.NewInputBlock("who", text, text, slack.NewOptionsMultiSelectBlockElement(slack.MultiOptTypeUser, text, "who")),
		}},
	}
	raw, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := checkView(raw); problems != nil {
		t.Errorf("refused: %v\n%s", problems, raw)
	}
}

// A text that is stored is never shorter than it was, escaping it again
// changes nothing, and no character of Slack's control set is left but in
// tokens and entities.
func TestEscapeText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"a", "é", "&", "<", ">", "&amp;", "&lt", "<@U1>", "<!here>", "<http://x|y>", "<#C1|n>", "\u202e", "|", "`"})
		s := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		for _, mrkdwn := range []bool{false, true} {
			once := escapeText(s, mrkdwn)
			if twice := escapeText(once, mrkdwn); twice != once {
				t.Fatalf("%q → %q → %q", s, once, twice)
			}
			if len(once) < len(s) {
				t.Fatalf("%q lost something: %q", s, once)
			}
			if !mrkdwn && strings.ContainsAny(once, "<>") {
				t.Fatalf("%q keeps a bracket: %q", s, once)
			}
		}
	})
}

// The limit of a text holds for its stored form, whatever is in it.
func TestLimitCountsStoredText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2980, 3010).Draw(t, "characters")
		special := rapid.IntRange(0, 10).Draw(t, "specials")
		s := x(n-special) + strings.Repeat(rapid.SampledFrom([]string{"&", "<", ">"}).Draw(t, "special"), special)
		stored := utf8.RuneCountInString(escapeText(s, false))
		_, problems := checkBlocks(json.RawMessage(`[{"type":"section","text":`+plain(s)+`}]`), surfaceMessage)
		if ok := problems == nil; ok != (stored <= 3000) {
			t.Fatalf("%d stored characters: %v", stored, problems)
		}
	})
}

func FuzzBlocks(f *testing.F) {
	for _, seed := range []string{
		`[]`, `null`, `[{"type":"section","text":{"type":"mrkdwn","text":"<@U1> & <"}}]`,
		`[{"type":"actions","elements":[{"type":"static_select","option_groups":[{"label":{"type":"plain_text","text":"x"},"options":[]}]}]}]`,
		`[{"type":"plan","title":"p","tasks":[{"type":"task_card","task_id":"1","title":"t"}]}]`,
		`[{"type":"table","rows":[[null]]}]`,
		`{"type":"modal","title":{"type":"plain_text","text":"t"},"blocks":[{"type":"input","label":{"type":"plain_text","text":"l"},"element":{"type":"number_input","is_decimal_allowed":true,"min_value":"1"}}]}`,
		`[{"type":"container","title":{"type":"plain_text","text":"t"},"child_blocks":[{"type":"layout","label":"l","rows":[]}]}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for on := surfaceMessage; on <= surfaceHome; on++ {
			revalidates(t, raw, func(raw json.RawMessage) (json.RawMessage, []problem) { return checkBlocks(raw, on) })
		}
		revalidates(t, raw, checkView)
	})
}

// revalidates demands that a check either refuses, with reasons, or returns
// what it accepts again, unchanged.
func revalidates(t *testing.T, raw json.RawMessage, check func(json.RawMessage) (json.RawMessage, []problem)) {
	t.Helper()
	stored, problems := check(raw)
	if (stored == nil) != (len(problems) > 0) {
		t.Fatalf("stored %s with problems %v", stored, problems)
	}
	if stored == nil {
		return
	}
	again, problems := check(stored)
	if problems != nil || string(again) != string(stored) {
		t.Fatalf("%s\nstored as %s\nchecks to %s, %v", raw, stored, again, problems)
	}
}

func Example_problem() {
	fmt.Fprintln(os.Stdout, problem{"/blocks/0/text/text", "must be less than 3001 characters"})
	// Output: [ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]
}
