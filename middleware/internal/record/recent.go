package record

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	shared = 16       // records from Redis that are remembered
	kept   = 1 << 10  // records from the local tier
	small  = 16 << 10 // bytes of each of these at most: the tier may have dropped it meanwhile
)

// Recent remembers decoded records, so that hits that share one read of Redis, or of the local tier, also share the decoding.
// A decoded record is never changed. It keeps the memory that it was decoded from, so that memory cannot be reused for another
// record meanwhile: the same memory is the same record.
type Recent struct {
	seed   maphash.Seed
	shared [shared]atomic.Pointer[Record]
	kept   [kept]atomic.Pointer[Record]
}

// NewRecent returns an empty memory.
func NewRecent() *Recent { return &Recent{seed: maphash.MakeSeed()} }

// Decode is the function Decode for what is stored under the key.
func (d *Recent) Decode(key string, raw []byte) (*Record, error) {
	hash := maphash.String(d.seed, key)
	if last := d.kept[hash%kept].Load(); last != nil && last.IsOf(raw) {
		return last, nil
	}
	slot := &d.shared[hash%shared]
	if last := slot.Load(); last != nil && last.IsOf(raw) {
		return last, nil
	}
	rec, err := Decode(raw)
	if err == nil {
		slot.Store(rec)
	}
	return rec, err
}

// Keep remembers the key's record, which the local tier has, for longer.
func (d *Recent) Keep(key string, rec *Record) {
	if slot := &d.kept[maphash.String(d.seed, key)%kept]; len(rec.raw) <= small && slot.Load() != rec {
		slot.Store(rec)
	}
}
