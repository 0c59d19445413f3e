package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// A Hash is a row's hash: SHA-256 over the hash of the row before it, the row's columns and the SHA-256 of its body.
// The row before the first one counts as all zeros.
type Hash [sha256.Size]byte

// String is the hash in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText makes a hash a JSON string of hex digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHash(string(text))
	return err
}

// ParseHash reads 64 hex digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != hex.EncodedLen(len(h)) {
		return Hash{}, fmt.Errorf("a hash has %d hex digits, not %d characters", hex.EncodedLen(len(h)), len(s))
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("a hash has hex digits only: %w", err)
	}
	return h, nil
}

// A Head is a row's place and hash. Kept somewhere else it is what a cut or rewritten journal is found by. The zero
// Head is that of an empty journal.
type Head struct {
	Seq  int64
	Hash Hash
}

// String is "SEQ:HASH".
func (h Head) String() string { return strconv.FormatInt(h.Seq, 10) + ":" + h.Hash.String() }

// ParseHead reads "SEQ:HASH".
func ParseHead(s string) (Head, error) {
	seq, hash, ok := strings.Cut(s, ":")
	if !ok {
		return Head{}, fmt.Errorf("a head looks like SEQ:HASH, a number and %d hex digits", hex.EncodedLen(sha256.Size))
	}
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != seq {
		return Head{}, fmt.Errorf("a head starts with a row's number, not with %q", seq)
	}
	h, err := ParseHash(hash)
	if err != nil {
		return Head{}, err
	}
	return Head{Seq: n, Hash: h}, nil
}

// chain computes the hash that r must have after a row with the hash prev. Every column goes in behind its length, so
// that no byte can move from one column to the next.
func chain(prev Hash, r *row) Hash {
	buf := make([]byte, 0, 512)
	buf = append(buf, prev[:]...)
	buf = appendInt(buf, r.seq)
	buf = appendInt(buf, r.time)
	for _, s := range []string{r.session, r.run, r.call, r.actor, r.kind} {
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	buf = append(buf, r.bodyHash[:]...)
	return sha256.Sum256(buf)
}

func appendInt(buf []byte, n int64) []byte {
	buf = binary.BigEndian.AppendUint64(buf, 8)
	return binary.BigEndian.AppendUint64(buf, uint64(n))
}
