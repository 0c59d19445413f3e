package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
)

// checkStart looks, when the journal is opened for writing, at what the chain of the last rows doesn't show: that their
// bodies are those that were hashed, that what they claim is claimed, and that nothing is claimed by rows that are gone.
// Going on with claims that don't fit would let something happen twice, or never again. The whole journal is for Verify.
func (r *Reader) checkStart(ctx context.Context, head Head) error {
	strays, err := r.claims(ctx, `SELECT scope, a, b, c, d, seq FROM claims WHERE seq > ? LIMIT 1`, head.Seq)
	if err != nil {
		return err
	}
	if len(strays) > 0 {
		return &Problem{Seq: strays[0].seq, Kind: BadClaims, What: fmt.Sprintf("it is missing, but its claim %s is there: the end of the journal was cut", strays[0].Claim)}
	}
	after := max(head.Seq-tailRows, 0)
	page, err := r.query(ctx, `SELECT `+columns+` FROM events e WHERE seq > ? ORDER BY seq LIMIT ?`, after, tailRows)
	if err != nil {
		return err
	}
	claims, err := r.claims(ctx, `SELECT scope, a, b, c, d, seq FROM claims WHERE seq > ?`, after)
	if err != nil {
		return err
	}
	claimed := bySeq(claims)
	for _, row := range page {
		if row.body == nil {
			continue // erased: its claims stay, and only Verify can tell who erased it
		}
		if sha256.Sum256(row.body) != row.bodyHash {
			return &Problem{Seq: row.seq, Kind: BadBody, What: "its body was changed"}
		}
		e, err := row.event()
		if err != nil {
			return &Problem{Seq: row.seq, Kind: BadEvent, What: err.Error()}
		}
		if err := sameClaims(e, claimed[row.seq]); err != nil {
			return err
		}
	}
	return nil
}
