package cacheguard

// Stats is what a Guard, or a Cache, is doing at the moment.
type Stats struct {
	Loading int // loaders that run
	Owed    int // keys and tags whose invalidation is pending, see Invalidate
}

// Stats returns what the Guard is doing at the moment, for metrics.
func (g *Guard) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	return Stats{Loading: int(g.loaders.running.Load()), Owed: int(g.invalidations.pending.count.Load() + g.versions.invalidations.pending.count.Load() +
		g.versions.ofRealms.pending.count.Load())}
}

// statsOf is what the Guard is doing for a kind.
func (g *Guard) statsOf(k *kind) Stats {
	return Stats{Loading: int(k.running.Load()), Owed: g.invalidations.pending.beginningWith(k.name + ":")}
}
