package lease

import (
	"slices"
	"time"
)

// RenewAll renews all leases that are held, and returns when the replies are there.
func (k *Keeper) RenewAll() {
	all := k.all()
	k.mu.Lock()
	for _, r := range all {
		r.flying++
	}
	k.sent += len(all)
	k.mu.Unlock()
	for batch := range slices.Chunk(all, maxBatch) {
		k.renew(batch).Wait()
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
	return slices.Clone(k.held)
}
