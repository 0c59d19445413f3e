// Package tools is about what an agent can do: what a tool is, and the tools
// that come with the program. It knows nothing of permission. Who may call what
// is decided elsewhere, before [Tool.Call]; a tool's part is to be honest about
// a call before it runs, and to do exactly that and no more.
//
// # The life of a call
//
//  1. A model writes arguments. [ParseArguments] reads them once and returns
//     their canonical form: valid JSON without duplicate members, fitting the
//     tool's schema, compact, members sorted. Everything after this point (what
//     is shown, hashed, approved, executed) uses these bytes and no others.
//  2. [Tool.Describe] renders the canonical arguments for people. It is a pure
//     function of the arguments: it reads no file and asks nobody, so what a
//     person approves can't change behind the rendering, and it leaves nothing
//     out: the arguments can be told from the [Preview].
//  3. [Tool.Call] runs them. A call that has begun ends by itself, by its time
//     limit, or by its context; it never leaves something running behind it.
//
// # Errors
//
// A [*Error] is a result that the model gets to see: a code and a sentence that
// says what to do otherwise. Any other error out of Call is a fault of ours.
//
// # Files
//
// The file tools work through an [os.Root] on the workspace: no path leads out
// of it, whatever links there are. They touch regular files only, write
// atomically, and refuse the program's own files (Options.Protected). The path of
// a call is the file's own, so that rules judge what is touched. A change names
// the version of the file that it was made for; see version.go.
//
// # Beyond the workspace
//
// http_request talks to the public internet and to the hosts that the operator
// lists, each address looked at in the moment of connecting; see guard.go.
// post_message and lookup_user reach people through a [Messenger].
//
// # The shell
//
// A command runs exactly as it was shown, with nothing of our environment, in a
// process group that is killed as a whole: when the command ends, when it is
// stopped, and when this program dies.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Tool is one thing that an agent can do. Implementations are safe for
// concurrent use.
type Tool interface {
	Spec() Spec
	// Describe renders what a call with these canonical arguments will do, for
	// people. It is pure, reads no files, and is complete: everything in args is
	// in the preview, exactly.
	Describe(args json.RawMessage) (Preview, error)
	// Call runs it with these canonical arguments. Errors for the model are
	// *Error; Output.Text is what the model sees.
	Call(ctx context.Context, args json.RawMessage) (Output, error)
}

// Facts are what a policy may know of one call besides its arguments. The zero
// value says nothing, which never makes a call look harmless.
type Facts struct {
	// Programs are the names of the programs that a command will run, as they
	// stand in it: "git", "/bin/rm". They are all of them only if Parsed.
	Programs []string
	Parsed   bool // the command was understood whole; false for everything that isn't a command
	// ReadOnly says that this call, whatever else the tool can do, is one literal
	// command of the short list that only looks.
	ReadOnly bool
	Path     string // the file that it is about, relative to the workspace and clean
	Host     string // the host that it talks to, lower case, without a port
}

// A Factual tool knows more of a call than its arguments say. Facts is pure, and
// is called with canonical arguments only.
type Factual interface {
	Facts(args json.RawMessage) Facts
}

// FactsOf returns what the tool knows of the call; nothing, if it says nothing.
func FactsOf(t Tool, args json.RawMessage) Facts {
	if f, ok := t.(Factual); ok {
		return f.Facts(args)
	}
	return Facts{}
}

// Demands are what whoever defined a tool wants for each of its calls, besides
// what the policy says. The zero value wants nothing.
type Demands struct {
	Ask       bool          // people are asked, whatever the annotations say
	Why       string        // what makes that so, as a clause; empty: whoever defined it wants it
	Risk      string        // low, medium, high or critical
	Approvers []string      // who may approve: requester, channel, U…, S…
	Quorum    int           // how many different people have to approve
	Timeout   time.Duration // how long they have to answer
	Confirm   bool          // a click is confirmed once more
}

// A Demanding tool wants something for its calls. Demands is pure.
type Demanding interface {
	Demands() Demands
}

// DemandsOf returns what the tool wants; nothing, if it says nothing.
func DemandsOf(t Tool) Demands {
	if d, ok := t.(Demanding); ok {
		return d.Demands()
	}
	return Demands{}
}

// A Defined tool does more than its Spec says: what somebody wrote down elsewhere
// decides what a call does. Definition is all of that, without secrets and fit for
// JSON; a tool with another definition is another tool. It never changes.
type Defined interface {
	Definition() any
}

// Spec is how a tool introduces itself, to models and to policies.
type Spec struct {
	Name        string             `json:"name"`
	Description string             `json:"description"`
	InputSchema *jsonschema.Schema `json:"inputSchema"`
	Annotations Annotations        `json:"annotations"`
}

// Annotations are a tool's claims about itself, with the names and the defaults
// of MCP: nothing said means that it changes things, destructively, and that it
// reaches beyond the workspace. Read them through the methods, which know the
// defaults.
type Annotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    bool   `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"` // means something only if not read-only
	IdempotentHint  bool   `json:"idempotentHint,omitempty"`  // means something only if not read-only
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

// ReadOnly reports whether the tool says that it changes nothing.
func (a Annotations) ReadOnly() bool { return a.ReadOnlyHint }

// Destructive reports whether the tool may overwrite or delete.
func (a Annotations) Destructive() bool {
	if a.DestructiveHint == nil {
		return !a.ReadOnlyHint
	}
	return *a.DestructiveHint
}

// Idempotent reports whether a second identical call changes nothing more.
func (a Annotations) Idempotent() bool { return a.ReadOnlyHint || a.IdempotentHint }

// OpenWorld reports whether the tool may reach beyond the workspace.
func (a Annotations) OpenWorld() bool { return a.OpenWorldHint == nil || *a.OpenWorldHint }

// PreviewKind says how the body of a preview wants to be shown.
type PreviewKind string

// The kinds of preview.
const (
	KindCommand PreviewKind = "command" // the body is a shell command
	KindDiff    PreviewKind = "diff"    // every line of the body begins with '-', '+' or ' '
	KindJSON    PreviewKind = "json"    // the body is indented JSON
	KindRequest PreviewKind = "request" // the body is an HTTP request: method and URL, headers, an empty line, what is sent
	KindText    PreviewKind = "text"    // the body is text for people, as they will read it
)

// Preview is a call rendered for people. Its strings are raw: the surface that
// shows them escapes, and decides what fits.
//
// Summary and Target are a help to the eye: one line, which may leave out what
// comes after it, but isn't shortened to what fits. A surface hides secrets first
// and shortens then. Body and Notes are complete.
type Preview struct {
	// Summary is action and target in one line: "Run printf ok > proof.txt".
	Summary string
	// Target is what the call is about: a file's path, or the word that a
	// command begins with.
	Target string
	Kind   PreviewKind
	// Body is the exact content of the call.
	Body string
	// Notes are sentences that belong under the body: options of the call, and
	// what a person should know before saying yes.
	Notes []string
	// Dir is the directory in which a command runs; empty means the workspace.
	Dir string
	// RunsAs says whose credentials the call uses, as far as the tool knows:
	// "the AWS role deployer". Empty: nobody's.
	RunsAs string
}

// Output is the result of a call that did what it should.
type Output struct {
	Text      string // what the model sees
	Truncated bool   // Text is not all there was; it says so itself, too
	ExitCode  *int   // of a command; nil for other tools
}

// Code is the machine-readable part of an [Error].
type Code string

// The codes of the tools in this package. Other parts of the program have codes
// of their own.
const (
	CodeInvalidArguments Code = "INVALID_ARGUMENTS" // the arguments don't fit; nothing was done
	CodeNotFound         Code = "NOT_FOUND"         // no such file, or the text to replace isn't in it
	CodeNotAllowed       Code = "NOT_ALLOWED"       // outside the workspace, a protected or a special file
	CodeConflict         Code = "CONFLICT"          // the file is not in the version that the call names; nothing was done
	CodeTooLarge         Code = "TOO_LARGE"         // beyond a size limit; nothing was done
	CodeUnknown          Code = "OUTCOME_UNKNOWN"   // whether it was performed can't be found out
	CodeTimeout          Code = "TIMEOUT"           // the time limit ended it; may be partly performed
	CodeAborted          Code = "ABORTED"           // stopped from outside; may be partly performed
	CodeExitStatus       Code = "EXIT_STATUS"       // a command ran and said that it failed
	CodeToolFailed       Code = "TOOL_FAILED"       // anything else that went wrong
)

// Error is a result for the model: the call did not do what it should.
type Error struct {
	Code    Code
	Message string // a sentence, for the model and for people
	// Output is what a command had written before it failed, bounded as
	// [Output.Text] is; empty for other errors.
	Output string
}

func (e *Error) Error() string { return e.Message }

// Text is what the model sees.
func (e *Error) Text() string {
	text := fmt.Sprintf("Error [%s]: %s", e.Code, e.Message)
	if e.Output != "" {
		text += "\n" + e.Output
	}
	return text
}

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
