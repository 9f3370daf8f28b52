package consistency

import "slices"

// rest is what is cached when nobody does anything.
type rest struct {
	cached   int64
	wrong    int
	doubtful int // wrong, but nobody promises to the contrary
}

// rest compares cache and source.
func (s *storm) rest() (r rest) {
	s.Helper()
	kind := s.kind
	if kind == "hasty" {
		kind = "patient" // nobody does any harm now
	}
	c, rdb := openCache(s.T, kind, s.redis.Addr(), s.rows), s.redis.Client(s)
	doubtful := s.doubtful(s.history())
	for k := range keys {
		source, err := s.rows.read(s.Context(), keyOf(k))
		if err != nil {
			s.Fatal(err)
		}
		r.cached += rdb.Exists(s.Context(), keyOf(k), nameOf(keyOf(k))).Val()
		got, err := c.get(s.Context(), keyOf(k))
		switch {
		case err != nil:
			s.Fatal(err)
		case got == source:
		case doubtful[k]:
			r.doubtful++
		default:
			s.Logf("%s: version %d is cached, %d is in the database", keyOf(k), got, source)
			r.wrong++
		}
	}
	return r
}

// doubtful are the keys that may be old at rest: an Update had lost its intent before it wrote, because Redis lost it
// or because its process was paused for longer than the intent lasts, and the process was then killed before it had
// made up for it. And nobody has updated the key since.
func (s *storm) doubtful(history []event) (doubts [keys]bool) {
	updates := only(history, "updated")
	for _, p := range s.all {
		if p.killed == 0 {
			continue
		}
		for _, e := range unfinished(readLog(s.T, p.log), p.killed) {
			during := func(l span) bool { return l.from < e.returned && l.to > e.called }
			evicted := func(l eviction) bool { return l.key == e.key && during(l.span) }
			healed := func(u event) bool { return u.key == e.key && u.called > e.returned }
			lost := slices.ContainsFunc(s.restarts, during) || slices.ContainsFunc(s.evicted, evicted) ||
				slices.ContainsFunc(p.pauses, during)
			if lost && !slices.ContainsFunc(updates, healed) {
				doubts[e.key] = true
			}
		}
	}
	return doubts
}

// unfinished are the Updates of a process that failed, or were under way when it was killed.
func unfinished(log []event, killed int64) []event {
	var open [writers]*event
	failed := only(log, "failed")
	for _, e := range log {
		switch e.kind {
		case "begun":
			open[e.who] = &e
		case "updated", "failed":
			open[e.who] = nil
		}
	}
	for _, e := range open {
		if e != nil {
			e.returned = killed
			failed = append(failed, *e)
		}
	}
	return failed
}
