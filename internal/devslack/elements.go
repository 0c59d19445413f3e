package devslack

import (
	"encoding/json"
	"fmt"
	"slices"
)

// element is one interactive element somewhere in blocks.
type element struct {
	blockID  string
	actionID string
	kind     string
	fields   map[string]any
	block    map[string]any // the block that it stands in
}

// elements finds everything with an action_id, wherever Block Kit allows it:
// in actions, as an accessory, in inputs, in cards and containers.
func elements(blocks json.RawMessage) []element {
	var parsed any
	if len(blocks) == 0 || decode(blocks, &parsed) != nil {
		return nil
	}
	var out []element
	var walk func(v any, block map[string]any)
	walk = func(v any, block map[string]any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item, block)
			}
		case map[string]any:
			if _, ok := v["block_id"].(string); ok {
				block = v
			}
			if id, ok := v["action_id"].(string); ok {
				blockID, _ := block["block_id"].(string)
				kind, _ := v["type"].(string)
				out = append(out, element{blockID: blockID, actionID: id, kind: kind, fields: v, block: block})
			}
			for _, key := range []string{"elements", "element", "accessory", "actions", "child_blocks", "rows", "items", "block", "blocks"} {
				walk(v[key], block)
			}
		}
	}
	walk(parsed, nil)
	return out
}

func findElement(blocks json.RawMessage, actionID, blockID string) (element, bool) {
	all := elements(blocks)
	i := slices.IndexFunc(all, func(e element) bool {
		return e.actionID == actionID && (blockID == "" || e.blockID == blockID)
	})
	if i < 0 {
		return element{}, false
	}
	return all[i], true
}

// stateful says under which key an element's state is reported, where its
// initial value stands, and what a value is.
type stateful struct {
	key, initial string
	value        valueShape
}

type valueShape int

const (
	shapeText   valueShape = iota // a string
	shapeTexts                    // several
	shapeOption                   // the option object with the value
	shapeOptions
	shapeAny // whatever is given
)

var statefuls = map[string]stateful{
	"plain_text_input":           {"value", "initial_value", shapeText},
	"email_text_input":           {"value", "initial_value", shapeText},
	"url_text_input":             {"value", "initial_value", shapeText},
	"number_input":               {"value", "initial_value", shapeText},
	"rich_text_input":            {"rich_text_value", "initial_value", shapeAny},
	"static_select":              {"selected_option", "initial_option", shapeOption},
	"external_select":            {"selected_option", "initial_option", shapeOption},
	"radio_buttons":              {"selected_option", "initial_option", shapeOption},
	"multi_static_select":        {"selected_options", "initial_options", shapeOptions},
	"multi_external_select":      {"selected_options", "initial_options", shapeOptions},
	"checkboxes":                 {"selected_options", "initial_options", shapeOptions},
	"users_select":               {"selected_user", "initial_user", shapeText},
	"multi_users_select":         {"selected_users", "initial_users", shapeTexts},
	"channels_select":            {"selected_channel", "initial_channel", shapeText},
	"multi_channels_select":      {"selected_channels", "initial_channels", shapeTexts},
	"conversations_select":       {"selected_conversation", "initial_conversation", shapeText},
	"multi_conversations_select": {"selected_conversations", "initial_conversations", shapeTexts},
	"datepicker":                 {"selected_date", "initial_date", shapeText},
	"timepicker":                 {"selected_time", "initial_time", shapeText},
	"datetimepicker":             {"selected_date_time", "initial_date_time", shapeAny},
	"file_input":                 {"files", "", shapeAny},
	"overflow":                   {"selected_option", "", shapeOption},
}

// initialState is what the element reports before anybody touched it; nil for
// elements without state.
func (e element) initialState() map[string]any {
	st, ok := statefuls[e.kind]
	if !ok || e.kind == "overflow" { // an overflow menu keeps no state
		return nil
	}
	value := e.fields[st.initial]
	if value == nil && (st.value == shapeOptions || st.value == shapeTexts) {
		value = []any{}
	}
	return map[string]any{"type": e.kind, st.key: value}
}

// chosen is the element's state after a person chose value: a string, a list
// of strings, or null. Options are named by their value.
func (e element) chosen(value any) (map[string]any, error) {
	st, ok := statefuls[e.kind]
	if !ok {
		return nil, refuse("no_value", fmt.Sprintf("%s %q takes no value", e.kind, e.actionID))
	}
	out := map[string]any{"type": e.kind, st.key: nil}
	if value == nil {
		return out, nil
	}
	switch st.value {
	case shapeAny:
		out[st.key] = value
	case shapeText:
		text, ok := value.(string)
		if !ok {
			return nil, refuse("invalid_value", e.actionID+" takes a string")
		}
		out[st.key] = text
		if text == "" {
			out[st.key] = nil // an emptied field
		}
	case shapeTexts:
		list, err := e.texts(value)
		if err != nil {
			return nil, err
		}
		out[st.key] = list
	case shapeOption:
		option, err := e.option(value)
		if err != nil {
			return nil, err
		}
		out[st.key] = option
	case shapeOptions:
		return out, e.chooseOptions(out, st.key, value)
	}
	return out, nil
}

func (e element) chooseOptions(out map[string]any, key string, value any) error {
	list, err := e.texts(value)
	if err != nil {
		return err
	}
	options := []any{}
	for _, item := range list {
		option, err := e.option(item)
		if err != nil {
			return err
		}
		options = append(options, option)
	}
	out[key] = options
	return nil
}

func (e element) texts(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case []string:
		return v, nil
	case []any:
		out := []string{}
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return nil, refuse("invalid_value", e.actionID+" takes a list of strings")
			}
			out = append(out, text)
		}
		return out, nil
	}
	return nil, refuse("invalid_value", e.actionID+" takes a list of strings")
}

// option finds the option with this value, also in option groups.
func (e element) option(value any) (map[string]any, error) {
	var candidates []any
	if list, ok := e.fields["options"].([]any); ok {
		candidates = list
	}
	groups, _ := e.fields["option_groups"].([]any)
	for _, g := range groups {
		if group, ok := g.(map[string]any); ok {
			list, _ := group["options"].([]any)
			candidates = append(candidates, list...)
		}
	}
	for _, c := range candidates {
		if option, ok := c.(map[string]any); ok && option["value"] == value {
			return option, nil
		}
	}
	return nil, refuse("no_such_option", fmt.Sprintf("%s has no option %v", e.actionID, value))
}

// stateValues is state.values: every stateful element with what was chosen,
// by block and action.
func stateValues(blocks json.RawMessage, chosen map[string]map[string]any) map[string]any {
	values := map[string]any{}
	for _, e := range elements(blocks) {
		state := e.initialState()
		if state == nil {
			continue
		}
		if picked, ok := chosen[e.blockID][e.actionID].(map[string]any); ok {
			state = picked
		}
		block, ok := values[e.blockID].(map[string]any)
		if !ok {
			block = map[string]any{}
			values[e.blockID] = block
		}
		block[e.actionID] = state
	}
	return values
}
