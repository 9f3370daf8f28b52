package cacheguard

// Stats is what a Guard is doing at the moment.
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
