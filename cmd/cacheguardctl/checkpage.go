package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	longLoad = 3  // seconds
	longLock = 30 // likewise
	much     = 10 // times what the others do
	noise    = 50 // gets per second, which are not worth a word
)

// pageFindings says what the pages of instances show that could be wrong. An instance that does not answer is in trouble itself.
func (c *check) pageFindings(e *env) (all []finding) {
	var rates []rate
	for _, page := range c.Page {
		p, err := lookAt(e.ctx, page)
		if err != nil {
			all = append(all, finding{Check: "instance", Result: wrong, Detail: err.Error()})
			continue
		}
		known := false
		for i := range p.Guards {
			g := &p.Guards[i]
			if g.Prefix != e.all.Prefix {
				continue
			}
			known = true
			rates = append(rates, g.rate())
			found := append(g.findings(), p.lockFindings(e.all.LockPrefix)...)
			if len(found) == 0 {
				found = []finding{{Result: ok, Detail: "its page shows nothing wrong"}}
			}
			for _, f := range found {
				f.Check, f.Node = "instance", g.Instance
				all = append(all, f)
			}
		}
		if !known {
			all = append(all, finding{
				Check: "instance", Result: warning, Detail: fmt.Sprintf("its page shows no Guard with the Prefix %q", e.all.Prefix),
			})
		}
	}
	return append(all, busiest(rates)...)
}

// findings says what one Guard's page shows.
func (g *pagedGuard) findings() (all []finding) {
	for _, name := range slices.Sorted(maps.Keys(g.Troubles)) {
		result, detail := warning, name
		switch name {
		case "outage":
			result, detail = wrong, "Redis does not answer"
		case "owing":
			result, detail = wrong, "invalidations are owed"
		case "refused":
			result, detail = wrong, "Redis answers with an error: "+g.Refused
		case "deaf":
			detail = "messages do not arrive"
		case "saturated":
			detail = fmt.Sprintf("%d loads wait for MaxLoads, which is %d", g.Queued, g.MaxLoads)
		case "bypassed":
			detail = "the cache is bypassed"
		}
		if name != "refused" {
			detail += ", for " + seconds(g.Troubles[name])
		}
		all = append(all, finding{Result: result, Detail: detail})
	}
	for _, load := range g.Running {
		if load.Took >= longLoad {
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf("a load of %q has run for %s", load.Key, seconds(load.Took))})
			break // it is the longest
		}
	}
	for _, cache := range g.Caches {
		for _, of := range []struct {
			n    uint64
			what string
		}{
			{cache.Lately.Damaged, "entries could not be decoded"},
			{cache.Lately.Unstorable, "values could not be stored"},
			{cache.Lately.Takeovers, "loads were taken over from instances that died or stood still"},
		} {
			if of.n > 0 {
				all = append(all, finding{Result: warning, Detail: fmt.Sprintf("%s%s lately: %d", cache.label(), of.what, of.n)})
			}
		}
	}
	return all
}

// lockFindings says which locks this process has held for long. That is no trouble if the work takes long.
func (p *paged) lockFindings(prefix string) (all []finding) {
	for _, l := range p.Lockers {
		if l.Prefix != prefix {
			continue
		}
		for _, lock := range l.Locks {
			if lock.For >= longLock {
				all = append(all, finding{Result: warning, Detail: fmt.Sprintf("it has held the lock %q for %s", lock.Name, seconds(lock.For))})
			}
		}
	}
	return all
}

// rate is how often an instance is asked.
type rate struct {
	instance, hottest string
	gets              float64
}

func (g *pagedGuard) rate() rate {
	r := rate{instance: g.Instance}
	for _, cache := range g.Caches {
		r.gets += cache.Rate
	}
	if len(g.Hot) > 0 {
		r.hottest = g.Hot[0].Key
	}
	return r
}

// busiest says which instance is asked far more often than the others, and for what.
func busiest(rates []rate) []finding {
	if len(rates) < 2 {
		return nil
	}
	slices.SortFunc(rates, func(a, b rate) int { return int(b.gets - a.gets) })
	most, next := rates[0], rates[1]
	if most.gets < noise || most.gets < much*next.gets {
		return nil
	}
	return []finding{{
		Check: "instance", Node: most.instance, Result: warning,
		Detail: fmt.Sprintf("it has %.0f gets/s, the next one has %.0f; its hottest key is %q", most.gets, next.gets, most.hottest),
	}}
}

// seconds is a duration from the page, for people.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
