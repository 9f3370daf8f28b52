package cacheguard

// Stats is what a Guard has to do at the moment.
type Stats struct {
	Loading int // loaders that run
	Owed    int // keys whose invalidation is still to be sent
}

// Stats returns it, for metrics.
func (g *Guard) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	return Stats{Loading: int(g.loaders.running.Load()), Owed: int(g.invalidations.pending.count.Load())}
}
