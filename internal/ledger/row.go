package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// maxBody is the size of the largest body. It is far above what any limit of the tools lets through; it keeps one
// append that can't be written from failing all that share its transaction.
const maxBody = 64 << 20

// A row is an event as it stands in the table. The bytes are what is hashed, so they are kept as they are.
type row struct {
	seq      int64
	time     int64 // microseconds since 1970, UTC
	session  string
	run      string
	call     string
	actor    string // JSON
	kind     string
	body     []byte // JSON; nil after it was erased
	bodyHash Hash
	hash     Hash
}

// bodies makes an empty body of each kind.
var bodies = map[string]func() Body{}

func init() {
	for _, b := range []Body{
		&MessageReceived{}, &RunStarted{}, &RunStopRequested{}, &RunFinished{}, &ModelCompleted{}, &ModelFailed{}, &SessionCompacted{}, &CallRequested{}, &OutcomeReported{}, &ToolDefined{}, &PermissionDecided{},
		&ApprovalRequested{}, &ApprovalShown{}, &ApprovalVoted{}, &ApprovalResolved{}, &ToolStarted{}, &ToolFinished{},
		&MessagePosted{}, &MessageSettled{}, &PolicyChanged{}, &Pruned{},
		&ApprovalAmended{}, &ApprovalExtended{}, &ApprovalReminded{}, &ApprovalEscalated{}, &ApprovalAskedAgain{}, &GrantGiven{}, &GrantRevoked{}, &Paused{}, &Resumed{}, &MessageWithdrawn{}, &FileSaved{},
	} {
		t := reflect.TypeOf(b).Elem()
		bodies[b.Kind()] = func() Body { return reflect.New(t).Interface().(Body) }
	}
}

// errUnknownKind: a row's kind isn't in the vocabulary.
var errUnknownKind = errors.New("unknown kind of event")

// newRow encodes an event; the writer fills in what is missing.
func newRow(e Event) (*row, error) {
	if isNil(e.Body) {
		return nil, errors.New("an event needs a body")
	}
	if _, ok := bodies[e.Kind()]; !ok {
		return nil, fmt.Errorf("%w: %q", errUnknownKind, e.Kind())
	}
	if _, ok := e.Body.(*Erased); ok {
		return nil, errors.New("an erased body can't be appended")
	}
	if !utf8.ValidString(e.Session) || !utf8.ValidString(e.Run) || !utf8.ValidString(e.Call) {
		return nil, errors.New("the session, run or call of an event is not valid UTF-8")
	}
	actor, err := encode(e.Actor)
	if err != nil {
		return nil, fmt.Errorf("encode actor: %w", err)
	}
	body, err := encode(e.Body)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", e.Kind(), err)
	}
	if len(body) > maxBody {
		return nil, fmt.Errorf("the body of a %s has %d bytes, more than %d", e.Kind(), len(body), maxBody)
	}
	return &row{session: e.Session, run: e.Run, call: e.Call, actor: string(actor), kind: e.Kind(), body: body, bodyHash: sha256.Sum256(body)}, nil
}

// event decodes a row. A body that isn't what was hashed is never handed out.
func (r *row) event() (Event, error) {
	e := Event{Seq: r.seq, Time: time.UnixMicro(r.time).UTC(), Session: r.session, Run: r.run, Call: r.call, Hash: r.hash}
	if err := decode([]byte(r.actor), &e.Actor); err != nil {
		return Event{}, fmt.Errorf("journal row %d: actor: %w", r.seq, err)
	}
	if r.body != nil && sha256.Sum256(r.body) != r.bodyHash {
		return Event{}, fmt.Errorf("journal row %d: the body was changed", r.seq)
	}
	body, err := decodeBody(r.kind, r.body)
	if err != nil {
		return Event{}, fmt.Errorf("journal row %d: %w", r.seq, err)
	}
	e.Body = body
	return e, nil
}

// decodeBody reads a body of the given kind; nil bytes stand for an erased one.
func decodeBody(kind string, data []byte) (Body, error) {
	empty, ok := bodies[kind]
	if !ok {
		return nil, fmt.Errorf("%w: %q", errUnknownKind, kind)
	}
	if data == nil {
		return &Erased{kind: kind}, nil
	}
	b := empty()
	if err := decode(data, b); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return b, nil
}

// encode writes compact JSON in which <, > and & stand for themselves: raw members keep their bytes.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// decode reads one JSON object, all of it, with no member that v doesn't know.
func decode(data []byte, v any) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return errors.New("not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// valid is the actor as JSON can hold it.
func (a Actor) valid() Actor {
	for _, s := range []*string{(*string)(&a.Kind), &a.Team, &a.ID, &a.Name, &a.Via} {
		*s = strings.ToValidUTF8(*s, "\uFFFD")
	}
	return a
}

// isNil also finds a nil pointer in a Body.
func isNil(b Body) bool {
	if b == nil {
		return true
	}
	v := reflect.ValueOf(b)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
