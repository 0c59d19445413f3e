package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"approvalbot/internal/tools"
	"approvalbot/internal/tools/process"
)

// output makes a tool's output of what a server answered. A result that says it is an error is one, with the server's own
// words for the model.
func (t *tool) output(res *sdk.CallToolResult) (tools.Output, error) {
	text, truncated := process.Bound(resultText(res), t.server.maxOutput)
	switch {
	case res.NeedsInput():
		// It asks for something before it goes on. Nothing is given, and the call isn't repeated with it.
		return tools.Output{}, &tools.Error{Code: tools.CodeToolFailed, Message: fmt.Sprintf(
			"%s wants further input (from a person, a model or the file system) before it does this, which approvalbot doesn't give to MCP servers.", t.server.label())}
	case res.IsError:
		return tools.Output{}, &tools.Error{
			Code: tools.CodeToolFailed, Message: fmt.Sprintf("%s says that %s failed.", t.server.label(), t.original), Output: text,
		}
	case text == "":
		text = "[The tool succeeded and returned nothing.]"
	}
	return tools.Output{Text: text, Truncated: truncated}, nil
}

// resultText is all that a model is told of a result: texts as they are, everything else described in brackets.
func resultText(res *sdk.CallToolResult) string {
	var parts []string
	structured := structuredText(res.StructuredContent)
	for _, c := range res.Content {
		part := contentText(c)
		if text, ok := c.(*sdk.TextContent); ok && structured != "" && sameJSON(text.Text, structured) {
			structured = "" // servers repeat it as text for clients that don't know it
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	if structured != "" {
		parts = append(parts, structured)
	}
	return strings.ToValidUTF8(strings.Join(parts, "\n"), "\uFFFD")
}

func contentText(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return left("image", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return left("audio", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return linkText(c)
	case *sdk.EmbeddedResource:
		return resourceText(c.Resource)
	case nil:
		return ""
	}
	return "[Content of a kind that approvalbot doesn't know was left out.]"
}

// left says what was left out.
func left(what, mime string, size int) string {
	if mime == "" {
		mime = "of an unnamed type"
	}
	return fmt.Sprintf("[%s, %s, %d bytes: not shown, only text is passed on]", what, short(mime), size)
}

func linkText(l *sdk.ResourceLink) string {
	text := "[link to a resource: " + short(l.URI)
	for _, more := range []string{l.Name, l.MIMEType, l.Description} {
		if more != "" {
			text += ", " + short(more)
		}
	}
	return text + "]"
}

func resourceText(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return ""
	case len(r.Blob) > 0:
		return "[resource " + short(r.URI) + "]\n" + left("content", r.MIMEType, len(r.Blob))
	}
	return "[resource " + short(r.URI) + "]\n" + r.Text
}

func structuredText(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// sameJSON tells whether two texts are the same JSON value, however they are written.
func sameJSON(a, b string) bool {
	x, y := jsontext.Value(a).Clone(), jsontext.Value(b).Clone()
	return x.Canonicalize() == nil && y.Canonicalize() == nil && bytes.Equal(x, y)
}
