package record

import (
	"hash/maphash"
	"sync/atomic"
)

// Recent remembers a few decoded records, so that hits that share one read of Redis, or of the local tier, also share the decoding.
// A decoded record is never changed. It keeps the memory that it was decoded from, so that memory cannot be reused for another
// record meanwhile: the same memory is the same record.
type Recent struct {
	seed  maphash.Seed
	slots [16]atomic.Pointer[Record]
}

// NewRecent returns an empty memory.
func NewRecent() *Recent { return &Recent{seed: maphash.MakeSeed()} }

// Decode is the function Decode for what is stored under the key.
func (d *Recent) Decode(key string, raw []byte) (*Record, error) {
	slot := &d.slots[maphash.String(d.seed, key)%uint64(len(d.slots))]
	if last := slot.Load(); last != nil && last.IsOf(raw) {
		return last, nil
	}
	rec, err := Decode(raw)
	if err == nil {
		slot.Store(rec)
	}
	return rec, err
}
