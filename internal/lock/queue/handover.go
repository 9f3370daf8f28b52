package queue

// Handed is the lock that the caller was handed as it went in; nil: it was not.
func (g *Guest) Handed() *Grant { return g.grant }

// Next is whom the caller may hand the lock to; nil: nobody. It is the first that will still be waiting when it hears
// of that: those before it will have left by then, and the lock would wait for them to give it back. first: it may go
// before other processes.
func (g *Guest) Next() (next *Guest, first bool) {
	g.atDoor(func() { next, first = g.door.nextLocked(true), g.door.passes < MaxPasses })
	return next, first
}

// Pass lets the next in with the lock in its hands, instead of the caller. Not ok: it waits no more.
func (g *Guest) Pass(next *Guest, lock Grant) (ok bool) {
	g.door.of.mu.Lock()
	defer g.door.of.mu.Unlock()
	if next.gone {
		return false
	}
	next.grant = &lock
	next.told, g.told = g.told, false // it has the lock in the caller's place
	g.door.passes++
	g.door.inside--
	g.door.letInLocked(next)
	return true
}

// IsGone reports whether the caller waits no more, without having been let in.
func (g *Guest) IsGone() bool {
	g.door.of.mu.Lock()
	defer g.door.of.mu.Unlock()
	return g.gone
}
