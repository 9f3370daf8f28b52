package lease

import (
	"maps"
	"slices"
	"time"
)

// RenewAll renews all leases that are held, and returns when the replies are there.
func (k *Keeper) RenewAll() {
	for batch := k.all(); len(batch) > 0; {
		n := min(len(batch), maxBatch)
		k.renew(batch[:n])
		batch = batch[n:]
	}
}

// Shortest is the TTL of the shortest of the leases that are held; 0: none is.
func (k *Keeper) Shortest() (ttl time.Duration) {
	for _, r := range k.all() {
		if ttl == 0 || r.TTL < ttl {
			ttl = r.TTL
		}
	}
	return ttl
}

func (k *Keeper) all() []*Renewal {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.held))
}
