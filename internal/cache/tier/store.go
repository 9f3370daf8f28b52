package tier

import (
	"math"

	"github.com/maypok86/otter/v2"
)

// overhead is about what an item takes beside its key and value, in bytes.
const overhead = 256

// store keeps the items. It is an interface to hide otter's generic types: they would be compiled anew in every package
// that knows a Tier, which is each that calls Get.
type store interface {
	GetIfPresent(key string) (*Item, bool)
	peek(key string) (*Item, bool) // as GetIfPresent, but does not count as a use
	// keep stores the item, if it is still wanted then.
	keep(key string, i *Item, wanted func() bool)
	Invalidate(key string) (*Item, bool)
	InvalidateAll()
	WeightedSize() uint64 // 0 if entries are limited
	EstimatedSize() int
}

type otterStore struct{ *otter.Cache[string, *Item] }

// newStore returns an empty store, which calls evicted whenever it drops a key for want of room.
func newStore(l Limits, evicted func()) (store, error) {
	options := &otter.Options[string, *Item]{
		MaximumSize: l.MaxEntries,
		Executor:    func(f func()) { f() }, // no goroutines of its own
		OnAtomicDeletion: func(e otter.DeletionEvent[string, *Item]) {
			e.Value.gone.Store(true) // a Get may have it in its hands
		},
		OnDeletion: func(e otter.DeletionEvent[string, *Item]) {
			if e.WasEvicted() {
				evicted()
			}
		},
	}
	if l.MaxBytes > 0 {
		options.MaximumWeight = uint64(l.MaxBytes)
		options.Weigher = func(key string, i *Item) uint32 {
			return uint32(min(int64(len(key)+i.bytes+overhead), math.MaxUint32))
		}
	}
	cache, err := otter.New(options)
	if err != nil {
		return nil, err
	}
	return otterStore{cache}, nil
}

func (s otterStore) peek(key string) (*Item, bool) {
	e, found := s.GetEntryQuietly(key)
	return e.Value, found
}

func (s otterStore) keep(key string, i *Item, wanted func() bool) {
	s.Compute(key, func(*Item, bool) (*Item, otter.ComputeOp) {
		if !wanted() {
			return nil, otter.CancelOp
		}
		return i, otter.WriteOp
	})
}
