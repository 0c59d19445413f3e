package devslack

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// This file is Block Kit as tables: what each block, element and composition
// object may hold. The numbers are Slack's documented limits.

// surfacesOf lists the blocks and elements that not every surface takes.
var surfacesOf = map[string][]surface{
	"alert":           {surfaceModal},
	"file_input":      {surfaceModal},
	"call":            {surfaceMessage},
	"context_actions": {surfaceMessage},
	"file":            {surfaceMessage},
	"markdown":        {surfaceMessage},
	"plan":            {surfaceMessage},
	"table":           {surfaceMessage},
	"task_card":       {surfaceMessage},
}

func allowedOn(kind string, on surface) bool {
	surfaces, restricted := surfacesOf[kind]
	return !restricted || slices.Contains(surfaces, on)
}

var (
	selects = []string{"static_select", "external_select", "users_select", "conversations_select", "channels_select"}
	multis  = []string{"multi_static_select", "multi_external_select", "multi_users_select", "multi_conversations_select", "multi_channels_select"}
	pickers = []string{"checkboxes", "radio_buttons", "datepicker", "timepicker"}

	sectionElements = slices.Concat(selects, multis, pickers, []string{"button", "image", "overflow", "workflow_button"})
	actionElements  = slices.Concat(selects, multis, pickers, []string{"button", "datetimepicker", "overflow", "rich_text_input", "workflow_button"})
	inputElements   = slices.Concat(selects, multis, pickers, []string{
		"datetimepicker", "email_text_input", "file_input", "number_input", "plain_text_input", "rich_text_input", "url_text_input"})

	containerBlocks = []string{"actions", "context", "divider", "file", "header", "image", "input", "layout", "rich_text", "section", "table", "video"}
	fallbackBlocks  = []string{"context", "divider", "header", "image", "rich_text", "section", "table", "video"}
	layoutBlocks    = slices.Concat(fallbackBlocks, []string{"actions", "alert", "card", "carousel", "container", "data_table", "data_visualization", "file", "input"})
)

// viewTypes are the two kinds of views.
var viewTypes = map[string]rule{
	"modal": shape{
		required: fields{"type": exactly("modal"), "title": plainText(24), "blocks": viewBlocks(surfaceModal)},
		optional: fields{
			"close": plainText(24), "submit": plainText(24), "private_metadata": str(0, 3000), "callback_id": id,
			"external_id": id, "clear_on_close": flag, "notify_on_close": flag,
		},
		also: func(c *checker, at string, view map[string]any) {
			if _, ok := view["submit"]; !ok && c.inputs > 0 {
				c.problem(at, "missing required field: submit (the view has input blocks)")
			}
		},
	}.rule(),
	"home": shape{
		required: fields{"type": exactly("home"), "blocks": viewBlocks(surfaceHome)},
		optional: fields{"private_metadata": str(0, 3000), "callback_id": id, "external_id": id},
	}.rule(),
}

func viewBlocks(on surface) rule {
	return func(c *checker, at string, value any) any {
		c.on = on
		return c.blocks(at, value)
	}
}

// blockShape is a shape with the two members of every block.
func blockShape(kind string, s shape) rule {
	s.required, s.optional = withType(kind, s), maps.Clone(s.optional)
	if s.optional == nil {
		s.optional = fields{}
	}
	s.optional["block_id"] = id
	return s.rule()
}

func withType(kind string, s shape) fields {
	required := fields{"type": exactly(kind)}
	maps.Copy(required, s.required)
	return required
}

// blockTypes lists the blocks. (It is a function because blocks stand in
// blocks, and variables that refer to each other can't be initialized.)
func blockTypes() map[string]rule {
	shapes := map[string]shape{
		"divider": {},
		"section": {
			optional: fields{"text": anyText(3000), "fields": list(1, 10, anyText(2000)), "accessory": elementOf(sectionElements...), "expand": flag},
			also:     someMember("text", "fields"),
		},
		"header": {
			required: fields{"text": plainText(150)},
			optional: fields{"level": integer(1, 4)},
		},
		"image": {
			required: fields{"alt_text": str(1, 2000)},
			optional: fields{"image_url": linkTo(3000, "http", "https"), "slack_file": slackFile, "title": plainText(2000)},
			also:     oneOfMembers("image_url", "slack_file"),
		},
		"actions":         {required: fields{"elements": list(1, 25, elementOf(actionElements...))}},
		"context":         {required: fields{"elements": list(1, 10, contextElement)}},
		"context_actions": {required: fields{"elements": list(1, 5, elementOf("feedback_buttons", "icon_button"))}},
		"file":            {required: fields{"external_id": str(1, 255), "source": exactly("remote")}},
		"call":            {required: fields{"call_id": str(1, 255)}},
		"input": {
			required: fields{"label": plainText(2000), "element": elementOf(inputElements...)},
			optional: fields{"hint": plainText(2000), "optional": flag, "dispatch_action": flag},
			also:     func(c *checker, _ string, _ map[string]any) { c.inputs++ },
		},
		"rich_text": {required: fields{"elements": list(0, 1000, union(richTextElements))}},
		"video": {
			required: fields{"alt_text": str(1, 2000), "title": plainText(200), "thumbnail_url": linkTo(3000, "http", "https"), "video_url": linkTo(3000, "https")},
			optional: fields{
				"author_name": str(0, 50), "description": plainText(200), "provider_icon_url": linkTo(3000, "http", "https"),
				"provider_name": str(0, 255), "title_url": linkTo(3000, "https"),
			},
		},
		"markdown": {required: fields{"text": str(1, maxMarkdown)}, also: sumMarkdown},
		"table": {
			required: fields{"rows": list(1, 100, list(1, 20, nullable(union(tableCells))))},
			optional: fields{"column_settings": list(0, 20, nullable(columnSetting))},
			also:     all(onlyTable, sumCells(10_000)),
		},
	}
	maps.Copy(shapes, agentBlocks())
	maps.Copy(shapes, compositeBlocks())
	types := make(map[string]rule, len(shapes))
	for kind, s := range shapes {
		types[kind] = blockShape(kind, s)
	}
	return types
}

// agentBlocks are the blocks in which an agent shows what it is doing.
func agentBlocks() map[string]shape {
	oneRichText := func(c *checker, at string, value any) any {
		return c.block(at, value, []string{"rich_text"})
	}
	return map[string]shape{
		"task_card": {
			required: fields{"task_id": str(1, 255), "title": str(1, 256)},
			optional: fields{
				"status":  oneOf("pending", "in_progress", "complete", "error"),
				"details": oneRichText, "output": oneRichText,
				"sources": list(0, 50, urlSource), "hide_title": flag,
			},
		},
		"plan": {
			required: fields{"title": str(1, 256)},
			optional: fields{"tasks": nested(0, 50, "task_card")},
			also: func(c *checker, at string, plan map[string]any) {
				tasks, _ := plan["tasks"].([]any)
				seen := map[any]bool{}
				for i, task := range tasks {
					name := task.(map[string]any)["task_id"]
					if seen[name] {
						c.problem(at+"/tasks/"+strconv.Itoa(i)+"/task_id", "`task_id` must be unique in a plan")
					}
					seen[name] = true
				}
			},
		},
		"alert": {
			required: fields{"text": anyText(200)},
			optional: fields{"level": oneOf("default", "info", "warning", "error", "success")},
		},
	}
}

// compositeBlocks are the blocks that hold other blocks, or much data.
func compositeBlocks() map[string]shape {
	return map[string]shape{
		"card": {
			optional: fields{
				"hero_image": elementOf("image"), "icon": elementOf("image"), "slack_icon": slackIcon,
				"title": anyText(150), "subtitle": anyText(150), "body": anyText(200), "subtext": anyText(200),
				"actions": list(1, 3, elementOf("button")),
			},
			also: all(someMember("hero_image", "title", "actions", "body"), atMostOne("icon", "slack_icon")),
		},
		"carousel": {required: fields{"elements": nested(1, 10, "card")}},
		"container": {
			required: fields{"child_blocks": deeper(nested(1, 10, containerBlocks...))},
			optional: fields{
				"title": plainText(150), "rich_text_title": plainRichText, "subtitle": anyText(150), "icon": elementOf("image"),
				"width":          oneOf("narrow", "standard", "wide", "full"),
				"is_collapsible": flag, "default_collapsed": flag, "has_header_divider": flag,
			},
			also: all(someMember("title", "rich_text_title"), collapsible),
		},
		"layout": {
			required: fields{"label": str(1, 150), "rows": deeper(list(1, 5, layoutRow))},
			optional: fields{"is_label_visible": flag, "grid_lines": oneOf("none", "rows", "outer"), "fallback": nested(0, 50, fallbackBlocks...)},
		},
		"data_table": {
			required: fields{"caption": str(1, 255), "rows": list(1, 201, list(1, 20, union(dataCells)))},
			optional: fields{"page_size": integer(1, 100), "row_header_column_index": integer(0, 19)},
			also:     sumCells(20_000),
		},
		"data_visualization": {required: fields{"title": str(1, 50), "chart": union(charts)}},
	}
}

func sumMarkdown(c *checker, at string, block map[string]any) {
	c.markdown += utf8.RuneCountInString(block["text"].(string))
	if c.markdown > maxMarkdown {
		c.problem(at+"/text", "all markdown blocks together must be less than %d characters", maxMarkdown+1)
	}
}

func onlyTable(c *checker, at string, _ map[string]any) {
	if c.tables++; c.tables > 1 {
		c.problem(at, "only one table is allowed per message")
	}
}

// sumCells bounds the text of a whole table.
func sumCells(most int) func(*checker, string, map[string]any) {
	return func(c *checker, at string, table map[string]any) {
		if cellLength(table["rows"]) > most {
			c.problem(at+"/rows", "must be less than %d characters", most+1)
		}
	}
}

// cellLength adds up the text members below a value.
func cellLength(value any) int {
	n := 0
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			n += cellLength(item)
		}
	case map[string]any:
		for name, member := range v {
			if s, ok := member.(string); ok && name == "text" {
				n += utf8.RuneCountInString(s)
			} else {
				n += cellLength(member)
			}
		}
	}
	return n
}

func atMostOne(a, b string) func(*checker, string, map[string]any) {
	return func(c *checker, at string, object map[string]any) {
		if object[a] != nil && object[b] != nil {
			c.problem(at, "must define at most one of: %s, %s", a, b)
		}
	}
}

func collapsible(c *checker, at string, container map[string]any) {
	can := container["is_collapsible"] == true
	if container["has_header_divider"] == true && can {
		c.problem(at+"/has_header_divider", "is only allowed when `is_collapsible` is false")
	}
	if container["default_collapsed"] == true && !can {
		c.problem(at+"/default_collapsed", "is only allowed when `is_collapsible` is true")
	}
}

// nullable lets null stand for "nothing here", as in an empty table cell.
func nullable(check rule) rule {
	return func(c *checker, at string, value any) any {
		if value == nil {
			return nil
		}
		return check(c, at, value)
	}
}

var layoutRow = shape{required: fields{"items": list(1, 3, shape{
	required: fields{"block": func(c *checker, at string, value any) any { return c.block(at, value, layoutBlocks) }},
	optional: fields{"width": oneOf("narrow", "standard", "wide"), "horizontal_alignment": oneOf("start", "center", "end")},
}.rule())}}.rule()

var columnSetting = shape{optional: fields{"align": oneOf("left", "center", "right", ""), "is_wrapped": flag}}.rule()

var tableCells = map[string]rule{
	"raw_text":   shape{required: fields{"type": exactly("raw_text"), "text": str(0, 10_000)}}.rule(),
	"raw_number": shape{required: fields{"type": exactly("raw_number"), "value": anyNumber}, optional: fields{"text": str(0, 255)}}.rule(),
	"rich_text":  plainRichText,
}

var dataCells = func() map[string]rule {
	cells := maps.Clone(tableCells)
	cells["action_cell"] = shape{
		required: fields{"type": exactly("action_cell"), "element": elementOf("button")},
		optional: fields{"fallback": union(tableCells, "raw_text", "raw_number")},
	}.rule()
	return cells
}()

var charts = map[string]rule{
	"pie": shape{required: fields{"type": exactly("pie"), "segments": list(1, 6, dataPoint)}}.rule(),
	"bar": seriesChart("bar"), "area": seriesChart("area"), "line": seriesChart("line"),
}

var dataPoint = shape{required: fields{"label": str(1, 20), "value": anyNumber}}.rule()

func seriesChart(kind string) rule {
	return shape{required: fields{
		"type":   exactly(kind),
		"series": list(1, 6, shape{required: fields{"name": str(1, 20), "data": list(1, 20, dataPoint)}}.rule()),
		"axis_config": shape{
			required: fields{"categories": list(1, 20, str(1, 20))},
			optional: fields{"x_label": str(0, 50), "y_label": str(0, 50)},
		}.rule(),
	}}.rule()
}

var urlSource = shape{required: fields{"type": exactly("url"), "url": linkTo(3000, "http", "https"), "text": str(1, 255)}}.rule()

var slackIcon = shape{required: fields{"type": exactly("icon"), "name": str(1, 255)}}.rule()

var slackFile = shape{
	optional: fields{"id": str(1, 255), "url": linkTo(3000, "http", "https")},
	also:     oneOfMembers("id", "url"),
}.rule()

// contextElement is an image or a bare text object.
func contextElement(c *checker, at string, value any) any {
	_, kind, ok := c.typed(at, value)
	switch {
	case !ok:
		return value
	case kind == "image":
		return elementOf("image")(c, at, value)
	default:
		return anyText(3000)(c, at, value)
	}
}

// elementShape is a shape with the members of every interactive element.
func elementShape(kind string, s shape) rule {
	optional := fields{"action_id": id}
	maps.Copy(optional, s.optional)
	s.required, s.optional = withType(kind, s), optional
	return s.rule()
}

// elementTypes lists the block elements.
func elementTypes() map[string]rule {
	shapes := map[string]shape{}
	maps.Copy(shapes, buttonElements())
	maps.Copy(shapes, choiceElements())
	maps.Copy(shapes, selectElements())
	maps.Copy(shapes, textElements())
	types := map[string]rule{
		"image": shape{
			required: fields{"type": exactly("image"), "alt_text": str(1, 2000)},
			optional: fields{"image_url": linkTo(3000, "http", "https"), "slack_file": slackFile},
			also:     oneOfMembers("image_url", "slack_file"),
		}.rule(),
	}
	for kind, s := range shapes {
		types[kind] = elementShape(kind, s)
	}
	return types
}

func buttonElements() map[string]shape {
	people := list(0, 100, str(1, 255))
	feedback := shape{
		required: fields{"text": plainText(75), "value": str(0, 2000)},
		optional: fields{"accessibility_label": str(0, 75)},
	}.rule()
	parameter := shape{required: fields{"name": str(1, 255), "value": str(0, 2000)}}.rule()
	trigger := shape{
		required: fields{"url": linkTo(3000, "https")},
		optional: fields{"customizable_input_parameters": list(0, 100, parameter)},
	}.rule()
	return map[string]shape{
		"button": {
			required: fields{"text": plainText(75)},
			optional: fields{
				"url": linkTo(3000, "http", "https", "mailto", "tel", "slack"), "value": str(0, 2000), "style": oneOf("primary", "danger"),
				"confirm": confirm, "accessibility_label": str(0, 75), "visible_to_user_ids": people,
				"agent_prompt": str(0, 3000), "agent_prompt_display": str(0, 3000),
			},
		},
		"icon_button": {
			required: fields{"icon": exactly("trash"), "text": plainText(75)},
			optional: fields{"value": str(0, 2000), "confirm": confirm, "accessibility_label": str(0, 75), "visible_to_user_ids": people},
		},
		"feedback_buttons": {required: fields{"positive_button": feedback, "negative_button": feedback}},
		"workflow_button": {
			required: fields{"text": plainText(75), "workflow": shape{required: fields{"trigger": trigger}}.rule()},
			optional: fields{"style": oneOf("primary", "danger"), "accessibility_label": str(0, 75)},
		},
	}
}

func choiceElements() map[string]shape {
	return map[string]shape{
		"overflow": {
			required: fields{"options": list(1, 5, linkOption)},
			optional: fields{"confirm": confirm},
		},
		"radio_buttons": {
			required: fields{"options": list(1, 10, richOption)},
			optional: fields{"initial_option": richOption, "confirm": confirm, "focus_on_load": focus},
			also:     initialAmongOptions,
		},
		"checkboxes": {
			required: fields{"options": list(1, 10, richOption)},
			optional: fields{"initial_options": list(1, 10, richOption), "confirm": confirm, "focus_on_load": focus, "visible_to_user_ids": list(0, 100, str(1, 255))},
			also:     initialAmongOptions,
		},
		"datepicker": {optional: fields{
			"initial_date": calendar("2006-01-02", "date"), "placeholder": placeholder, "confirm": confirm, "focus_on_load": focus}},
		"timepicker": {optional: fields{
			"initial_time": calendar("15:04", "time"), "timezone": str(1, 255), "placeholder": placeholder, "confirm": confirm, "focus_on_load": focus}},
		"datetimepicker": {optional: fields{
			"initial_date_time": integer(1_000_000_000, 9_999_999_999), "confirm": confirm, "focus_on_load": focus}},
	}
}

// selectElements makes the five selects and their multi forms out of what they
// share and what tells them apart.
func selectElements() map[string]shape {
	var (
		conversation = str(1, 255)
		several      = list(1, 100, str(1, 255))
		filter       = shape{
			optional: fields{
				"include":                          list(1, 4, oneOf("im", "mpim", "private", "public")),
				"exclude_external_shared_channels": flag, "exclude_bot_users": flag,
			},
			also: someMember("include", "exclude_external_shared_channels", "exclude_bot_users"),
		}.rule()
		options = fields{"options": list(1, 100, option), "option_groups": list(1, 100, optionGroup)}
	)
	kinds := map[string]struct{ both, single, multi fields }{
		"static":        {options, fields{"initial_option": option}, fields{"initial_options": list(1, 100, option)}},
		"external":      {fields{"min_query_length": integer(0, 300)}, fields{"initial_option": option}, fields{"initial_options": list(1, 100, option)}},
		"users":         {nil, fields{"initial_user": conversation}, fields{"initial_users": several}},
		"conversations": {fields{"default_to_current_conversation": flag, "filter": filter}, fields{"initial_conversation": conversation, "response_url_enabled": flag}, fields{"initial_conversations": several}},
		"channels":      {nil, fields{"initial_channel": conversation, "response_url_enabled": flag}, fields{"initial_channels": several}},
	}
	shapes := map[string]shape{}
	for name, kind := range kinds {
		single := shape{optional: merged(selectFields, kind.both, kind.single)}
		multi := shape{optional: merged(selectFields, kind.both, kind.multi, fields{"max_selected_items": integer(1, 100)})}
		if name == "static" {
			single.also = all(oneOfMembers("options", "option_groups"), initialAmongOptions)
			multi.also = single.also
		}
		shapes[name+"_select"], shapes["multi_"+name+"_select"] = single, multi
	}
	return shapes
}

var selectFields = fields{"placeholder": placeholder, "confirm": confirm, "focus_on_load": focus}

func merged(parts ...fields) fields {
	all := fields{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

func textElements() map[string]shape {
	dispatch := shape{optional: fields{
		"trigger_actions_on": list(1, 2, oneOf("on_enter_pressed", "on_character_entered"))}}.rule()
	common := fields{"placeholder": placeholder, "dispatch_action_config": dispatch, "focus_on_load": focus}
	with := func(extra fields) fields { return merged(common, extra) }
	return map[string]shape{
		"plain_text_input": {
			optional: with(fields{"initial_value": str(0, 3000), "multiline": flag, "min_length": integer(0, 3000), "max_length": integer(1, 3000)}),
			also:     ordered("min_length", "max_length"),
		},
		"number_input": {
			required: fields{"is_decimal_allowed": flag},
			optional: with(fields{"initial_value": numeral, "min_value": numeral, "max_value": numeral}),
			also:     ordered("min_value", "max_value"),
		},
		"email_text_input": {optional: with(fields{"initial_value": str(0, 3000)})},
		"url_text_input":   {optional: with(fields{"initial_value": str(0, 3000)})},
		"rich_text_input": {
			optional: with(fields{"initial_value": plainRichText, "min_lines": integer(1, 100), "max_lines": integer(1, 100)}),
			also:     ordered("min_lines", "max_lines"),
		},
		"file_input": {optional: fields{"filetypes": list(1, 100, str(1, 20)), "max_files": integer(1, 10)}},
	}
}

// ordered demands that a lower bound isn't above its upper bound.
func ordered(low, high string) func(*checker, string, map[string]any) {
	bound := func(value any) (float64, bool) {
		switch v := value.(type) {
		case json.Number:
			f, err := v.Float64()
			return f, err == nil
		case string:
			f, err := strconv.ParseFloat(v, 64)
			return f, err == nil
		}
		return 0, false
	}
	return func(c *checker, at string, object map[string]any) {
		min, okMin := bound(object[low])
		max, okMax := bound(object[high])
		if okMin && okMax && min > max {
			c.problem(at+"/"+low, "must be less than or equal to %s", high)
		}
	}
}

// focus is focus_on_load, which one element of a view may have.
func focus(c *checker, at string, value any) any {
	flag(c, at, value)
	if value == true {
		if c.focused++; c.focused > 1 {
			c.problem(at, "only one element can be focused on load")
		}
	}
	return value
}

var (
	placeholder = plainText(150)

	// option is what menus hold; radio buttons and checkboxes take mrkdwn too,
	// and only an overflow menu's options may be links.
	option     = optionShape(plainText(75), nil)
	richOption = optionShape(anyText(75), nil)
	linkOption = optionShape(plainText(75), fields{"url": linkTo(3000, "http", "https", "mailto", "tel", "slack")})

	optionGroup = shape{required: fields{"label": plainText(75), "options": list(1, 100, option)}}.rule()

	confirm = shape{
		required: fields{"title": plainText(100), "text": anyText(300), "confirm": plainText(30), "deny": plainText(30)},
		optional: fields{"style": oneOf("primary", "danger")},
	}.rule()
)

func optionShape(label rule, extra fields) rule {
	return shape{
		required: fields{"text": label, "value": str(1, 75)}, // older documentation says 150
		optional: merged(fields{"description": label}, extra),
	}.rule()
}

// initialAmongOptions demands that what is chosen at first can be chosen.
func initialAmongOptions(c *checker, at string, object map[string]any) {
	options, _ := object["options"].([]any)
	groups, _ := object["option_groups"].([]any)
	for _, group := range groups {
		inGroup, _ := group.(map[string]any)["options"].([]any)
		options = slices.Concat(options, inGroup)
	}
	check := func(at string, chosen any) {
		if !slices.ContainsFunc(options, func(o any) bool { return reflect.DeepEqual(o, chosen) }) {
			c.problem(at, "must exactly match one of the options")
		}
	}
	if chosen, ok := object["initial_option"]; ok {
		check(at+"/initial_option", chosen)
	}
	several, _ := object["initial_options"].([]any)
	for i, chosen := range several {
		check(at+"/initial_options/"+strconv.Itoa(i), chosen)
	}
}

// plainRichText is a rich_text object that is no block of its own: a table
// cell, an input's first value, a container's title.
var plainRichText = shape{
	required: fields{"type": exactly("rich_text"), "elements": list(0, 1000, union(richTextElements))},
	optional: fields{"block_id": id},
}.rule()

// richTextElements are the paragraphs of a rich_text block.
var richTextElements = map[string]rule{
	"rich_text_section": richTextShape("rich_text_section", nil),
	"rich_text_quote":   richTextShape("rich_text_quote", fields{"border": integer(0, 1)}),
	"rich_text_preformatted": shape{
		required: fields{"type": exactly("rich_text_preformatted"), "elements": list(0, 1000, union(inlineElements, "text", "link"))},
		optional: fields{"border": integer(0, 1), "language": str(0, 255)},
	}.rule(),
	"rich_text_list": shape{
		required: fields{
			"type": exactly("rich_text_list"), "style": oneOf("bullet", "ordered"),
			"elements": list(0, 1000, richTextShape("rich_text_section", nil)),
		},
		optional: fields{"indent": integer(0, 8), "offset": integer(0, 1_000_000), "border": integer(0, 1)},
	}.rule(),
}

func richTextShape(kind string, optional fields) rule {
	return shape{
		required: fields{"type": exactly(kind), "elements": list(0, 1000, union(inlineElements))},
		optional: optional,
	}.rule()
}

// inlineElements are what stands in a line of rich text.
var inlineElements = map[string]rule{
	"text":      inline("text", fields{"text": str(1, 100_000)}, nil),
	"link":      inline("link", fields{"url": linkTo(3000, "http", "https", "mailto", "tel", "slack", "ftp")}, fields{"text": str(0, 3000), "unsafe": flag}),
	"user":      inline("user", fields{"user_id": str(1, 255)}, nil),
	"usergroup": inline("usergroup", fields{"usergroup_id": str(1, 255)}, nil),
	"team":      inline("team", fields{"team_id": str(1, 255)}, nil),
	"channel":   inline("channel", fields{"channel_id": str(1, 255)}, nil),
	"broadcast": inline("broadcast", fields{"range": oneOf("here", "channel", "everyone")}, nil),
	"emoji":     inline("emoji", fields{"name": str(1, 255)}, fields{"unicode": str(0, 255), "skin_tone": integer(1, 6)}),
	"color":     inline("color", fields{"value": matching(regexp.MustCompile(`^#(?:[0-9a-fA-F]{3}){1,2}$`), "hex color")}, nil),
	"date": inline("date", fields{"timestamp": integer(0, 1<<53), "format": str(1, 255)},
		fields{"url": linkTo(3000, "http", "https"), "fallback": str(0, 3000), "timezone": str(0, 255)}),
}

func inline(kind string, required, optional fields) rule {
	return shape{
		required: merged(fields{"type": exactly(kind)}, required),
		optional: merged(fields{"style": textStyle}, optional),
	}.rule()
}

var textStyle = shape{optional: fields{
	"bold": flag, "italic": flag, "strike": flag, "code": flag, "underline": flag,
	"highlight": flag, "client_highlight": flag, "unlink": flag,
}}.rule()
