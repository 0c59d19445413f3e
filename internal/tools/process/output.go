package process

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// bounded keeps the beginning and the end of what is written to it, half of the
// limit each, and counts the rest. A build's first error and its last line are
// what people and models look for.
type bounded struct {
	head  []byte
	tail  []byte // a ring once it is full
	start int    // of the ring
	half  int
	total int64
}

func newBounded(limit int) *bounded { return &bounded{half: max(limit/2, 1)} }

// ReadFrom takes in everything until r ends or fails. It keeps reading beyond
// the limit, so that the writer never blocks.
func (b *bounded) ReadFrom(r io.Reader) (int64, error) {
	buf := make([]byte, 32<<10)
	for before := b.total; ; {
		n, err := r.Read(buf)
		b.write(buf[:n])
		if err == io.EOF {
			return b.total - before, nil
		}
		if err != nil {
			return b.total - before, err
		}
	}
}

func (b *bounded) write(p []byte) {
	b.total += int64(len(p))
	n := min(b.half-len(b.head), len(p))
	b.head = append(b.head, p[:n]...)
	p = p[n:]
	if len(p) > b.half {
		p = p[len(p)-b.half:]
	}
	n = min(b.half-len(b.tail), len(p))
	b.tail = append(b.tail, p[:n]...)
	for p = p[n:]; len(p) > 0; p = p[n:] {
		n = copy(b.tail[b.start:], p)
		b.start = (b.start + n) % b.half
	}
}

// text returns what was kept, as valid UTF-8, with the cut marked.
func (b *bounded) text() (text string, truncated bool) {
	tail := append(append([]byte(nil), b.tail[b.start:]...), b.tail[:b.start]...)
	left := b.total - int64(len(b.head)) - int64(len(tail))
	if left == 0 {
		return printable(append(b.head, tail...)), false
	}
	head := trimPartialRune(b.head)
	for i := 0; i < utf8.UTFMax-1 && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	left = b.total - int64(len(head)) - int64(len(tail))
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", printable(head), left, printable(tail)), true
}

// printable makes any bytes a text that can be kept and sent: what isn't UTF-8
// is replaced by the replacement character.
func printable(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }

// trimPartialRune cuts off the beginning of a rune whose rest is missing.
func trimPartialRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if rest := b[len(b)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRune(rest) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// Bound keeps the beginning and the end of a text, limit bytes together, as valid UTF-8 and with the cut marked: what
// [Command.Run] does with the output of a command.
func Bound(text string, limit int) (bounded string, truncated bool) {
	b := newBounded(limit)
	b.write([]byte(text))
	return b.text()
}
