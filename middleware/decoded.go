package middleware

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/cacheguard/go/middleware/internal/record"
)

// decodings are a few records as they were decoded last: hits that share a read of Redis, and those of the local tier, share
// the decoding too. Records are not changed once they are decoded.
//
// A record keeps what it was decoded from. So memory that is the very same has the same record: it cannot have become
// another's meanwhile.
type decodings struct {
	seed  maphash.Seed
	slots [16]atomic.Pointer[record.Record]
}

// of decodes what is stored under the key.
func (d *decodings) of(key string, raw []byte) (*record.Record, error) {
	slot := &d.slots[maphash.String(d.seed, key)%uint64(len(d.slots))]
	if last := slot.Load(); last != nil && last.IsOf(raw) {
		return last, nil
	}
	rec, err := record.Decode(raw)
	if err == nil {
		slot.Store(rec)
	}
	return rec, err
}
