package middleware

import (
	"hash/maphash"
	"sync/atomic"
)

// decodings are a few records as they were decoded last: hits that share a read of Redis, and those of the local tier, share
// the decoding too. Records are not changed once they are decoded.
//
// What a record was decoded from is kept with it. So memory that is the very same has the same record: it cannot have become
// another's meanwhile.
type decodings struct {
	seed  maphash.Seed
	slots [16]atomic.Pointer[decoding]
}

type decoding struct {
	raw []byte
	rec *record
}

// of decodes what is stored under the key.
func (d *decodings) of(key string, raw []byte) (*record, error) {
	slot := &d.slots[maphash.String(d.seed, key)%uint64(len(d.slots))]
	if last := slot.Load(); last != nil && len(raw) > 0 && len(raw) == len(last.raw) && &raw[0] == &last.raw[0] {
		return last.rec, nil
	}
	rec, err := decodeRecord(raw)
	if err == nil && len(raw) > 0 {
		slot.Store(&decoding{raw, rec})
	}
	return rec, err
}
