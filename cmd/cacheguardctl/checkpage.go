package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/watch/observe"
)

const (
	longLoad   = 3         // seconds
	stillWrong = 5         // the same, since an error: then it may be over
	longBehind = 10        // the same
	muchLog    = 512 << 20 // half of the default of MaxRetained
	longLock   = 30        // the same
	much       = 10        // times what the others do
	nearlyAll  = 0.95      // of the loads: the source is down
	noise      = 50        // gets per second, which are not worth a word
	mostHot    = 3         // keys that are named

	lately = 300 // seconds ago, of what a page of an earlier version gives no age
)

// pageFindings says what the pages of instances show that could be wrong. An instance that does not answer is in trouble itself. One is well, or
// there is something to say of it.
func (c *check) pageFindings(e *env) (all []finding) {
	var rates []rate
	var guards []*pagedGuard
	pages := e.look(c.Page)
	for i := range pages {
		for _, g := range pages[i].of(e.all.Prefix) {
			guards, rates = append(guards, g), append(rates, g.rate())
		}
	}
	ofAll := slices.Concat(mistyped(guards), busiest(rates), hottest(guards))
	for i := range pages {
		p := &pages[i]
		if p.err != nil {
			all = append(all, finding{Check: "instance", Result: wrong, Detail: p.err.Error()})
			continue
		}
		own := p.of(e.all.Prefix)
		all = append(all, p.otherTroubles(e.all.Prefix)...)
		if len(own) == 0 {
			all = append(all, finding{Check: "instance", Node: p.instance(), Result: warning, Detail: p.others(e.all.Prefix)})
		}
		for _, g := range own {
			found := lastingFirst(slices.Concat(g.findings(), p.pagesFindings(), p.lockFindings(e.all.LockPrefix), p.feedFindings()))
			if len(found) == 0 && !slices.ContainsFunc(ofAll, func(f finding) bool { return f.Node == g.Instance }) {
				found = []finding{{Result: ok, Detail: fmt.Sprintf("its page shows nothing wrong with the Guard %q", g.Prefix)}}
			}
			for _, f := range found {
				f.Check, f.Node = "instance", g.Instance
				all = append(all, f)
			}
		}
	}
	return append(all, ofAll...)
}

// others says which Prefixes there are instead of the one that was asked for.
func (p *paged) others(prefix string) string {
	said := fmt.Sprintf("its page shows no Guard with the Prefix %q", prefix)
	for i, g := range p.Guards {
		said += map[bool]string{true: ": it has ", false: ", "}[i == 0] + strconv.Quote(g.Prefix)
	}
	return said
}

// otherTroubles says which Guards of the process are in trouble that were not asked for: each Prefix has a check of its own.
func (p *paged) otherTroubles(prefix string) (all []finding) {
	for i := range p.Guards {
		g := &p.Guards[i]
		found := lastingFirst(g.findings())
		if g.Prefix == prefix || len(found) == 0 {
			continue
		}
		more := ""
		if n := len(found) - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
		all = append(all, finding{Check: "instance", Node: g.Instance, Result: warning, Detail: fmt.Sprintf(
			"its Guard %q: %s%s: see check --prefix %s", g.Prefix, found[0].Detail, more, g.Prefix,
		)})
	}
	return all
}

// lastingFirst puts what may be over after what lasts, and the latest of it first. One cause has one line.
func lastingFirst(all []finding) []finding {
	all = together(all)
	slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(a.past, b.past) })
	return all
}

// together has what a cause brings in the line of the cause.
func together(all []finding) []finding {
	cause := slices.IndexFunc(all, func(f finding) bool { return f.isCause })
	for i := range all {
		f := &all[i]
		if cause < 0 || !f.isBrought {
			continue
		}
		all[cause].Detail += "; so " + f.Detail
		if f.Result == wrong {
			all[cause].Result = wrong
		}
	}
	return slices.DeleteFunc(all, func(f finding) bool { return cause >= 0 && f.isBrought })
}

// findings says what one Guard's page shows.
func (g *pagedGuard) findings() (all []finding) {
	order := g.Order
	if order == nil {
		order = slices.Sorted(maps.Keys(g.Troubles))
	}
	for _, name := range order {
		f := g.trouble(name)
		f.isCause, f.isBrought = name == g.Cause, slices.Contains(g.Brought, name)
		all = append(all, f)
	}
	all = append(all, g.longLoads()...)
	for i := range g.Caches {
		all = append(all, g.Caches[i].findings()...)
	}
	return append(all, g.failingCaches()...)
}

// longLoads names the load that has run for longest, if that is long, and says how many others have.
func (g *pagedGuard) longLoads() []finding {
	n := slices.IndexFunc(g.Running, func(l pagedLoad) bool { return l.Took < longLoad })
	if n < 0 {
		n = len(g.Running)
	}
	if n == 0 {
		return nil
	}
	detail := fmt.Sprintf("a load of %q has run for %s", g.Running[0].Key, seconds(g.Running[0].Took))
	if began := g.Running[0].Began; began != "" {
		detail += ", since " + began
	}
	if n > 1 {
		detail += fmt.Sprintf(", and %s for more than %d s", observe.Count(n-1, "other", "others"), longLoad)
	}
	return []finding{{Result: warning, Detail: detail}}
}

// failingCaches says of which Caches many loads fail. Those whose last error says the same have one cause, and one line.
func (g *pagedGuard) failingCaches() (all []finding) {
	said := make(map[string]bool)
	for _, first := range g.Caches {
		f := first.Failing
		if f == nil || said[f.Last] {
			continue
		}
		said[f.Last] = true
		var names []string
		var failed, loads uint64
		lasts := 0.0
		for _, c := range g.Caches {
			if c.Failing != nil && c.Failing.Last == f.Last {
				names, lasts = append(names, cmp.Or(c.Name, "keys of no Cache")), max(lasts, c.Failing.For)
				failed, loads = failed+c.Failing.Failed, loads+c.Failing.Loads
			}
		}
		label := strings.Join(names, ", ") + ": "
		if len(g.Caches) == 1 && first.Name == "" {
			label = ""
		}
		share := float64(failed) / float64(max(loads, 1))
		all = append(all, finding{Result: map[bool]string{true: wrong, false: warning}[share >= nearlyAll], Detail: fmt.Sprintf(
			"%s%.0f%% of loads fail, for %s, last: %s", label, 100*share, seconds(lasts), f.Last,
		)})
	}
	return all
}

// trouble says what the name of a trouble means, and for how long it has lasted.
func (g *pagedGuard) trouble(name string) finding {
	f, lasted := finding{Result: warning}, ", for "+seconds(g.Troubles[name])
	switch name {
	case "outage":
		f.Result, f.Detail = wrong, "Redis does not answer"+lasted
	case "slow":
		f.Detail = "Redis takes longer than the loads that it saves" + lasted
	case "pending":
		f.Result, f.Detail = wrong, "invalidations are pending"+lasted
	case "refused":
		since := ""
		if f.Result = wrong; g.Troubles[name] > stillWrong {
			f.Result, since, f.past = warning, " and not since then", g.Troubles[name]
		}
		f.Detail = "Redis answered with an error, last " + seconds(g.Troubles[name]) + " ago" + since + ": " + g.Refused
	case "deaf":
		if f.Detail = "messages do not arrive"; g.Troubles[name] > 0 { // 0: since when is not known
			f.Detail += lasted
		}
		if g.DeafAs != "" {
			f.Detail += ": " + g.DeafAs
		}
	case "missed":
		f.Detail = "messages may have been missed again and again" + lasted + ": calls that wait ask again each time, and a local tier, if there is one, is dropped"
	case "mute":
		f.Detail = "messages about invalidations are refused" + lasted + ": other local tiers, if there are any, may serve old values until Local.TTL"
	case "saturated":
		f.Detail = fmt.Sprintf("%s for MaxLoads, which is %d%s", observe.Count(g.Queued, "load waits", "loads wait"), g.MaxLoads, lasted)
	case "limiter":
		f.Detail = "loads wait for Config.Limiter" + lasted
	case "intent":
		f.Detail = observe.Count(g.Intents, "intent stands", "intents stand") + ", the oldest" + lasted[1:]
		if g.Stands != "" {
			f.Detail += ", an " + g.Stands
		}
	case "bypassed":
		if f.Detail = "the cache is bypassed" + lasted; g.Bypassed != "" {
			f.Detail += ", " + g.Bypassed
		}
	default: // of a later version
		f.Detail = name + lasted
	}
	return f
}

// findings says what went wrong with a cache's entries and loads, but for what fails.
func (c *pagedCache) findings() (all []finding) {
	for _, of := range []struct {
		n          uint64
		name, what string
	}{
		{c.Lately.Damaged, "damaged", "entries could not be decoded"},
		{c.Lately.Unstorable, "unstorable", "values could not be stored"},
		{c.Lately.Takeovers, "takeovers", "loads were taken over from instances that died, stood still or could not renew"},
	} {
		if of.n == 0 {
			continue
		}
		f := finding{Result: warning, Detail: fmt.Sprintf("%s%s lately: %d", c.label(), of.what, of.n), past: lately}
		if ago, said := c.LatelyAgo[of.name]; said {
			f.Detail, f.past = f.Detail+", last "+seconds(ago)+" ago at most", ago
		}
		all = append(all, f)
	}
	return all
}

// lockFindings says which locks this process has held for long, which is no trouble if the work takes long, and whose messages do not arrive.
func (p *paged) lockFindings(prefix string) (all []finding) {
	for _, l := range p.Lockers {
		if l.Deaf {
			all = append(all, finding{Result: warning, isBrought: true, Detail: fmt.Sprintf("%s (%s): messages do not arrive: calls that wait for locks poll", l.Prefix, l.Kind)})
		}
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

// feedFindings says which feeds are in trouble or behind.
func (p *paged) feedFindings() (all []finding) {
	for _, f := range p.Feeds {
		switch {
		case f.Problem != "":
			all = append(all, finding{Result: wrong, Detail: fmt.Sprintf("feed %s: changes wait to be invalidated: %s", f.Name, f.Problem)})
		case f.HeldBy != "":
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf("feed %s: %s", f.Name, f.trouble())})
		case f.Behind >= longBehind:
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf("feed %s is behind for %s", f.Name, seconds(f.Behind))})
		}
		if f.Unmapped > 0 && f.UnmappedAgo >= 0 {
			last := ""
			if f.UnmappedAgo > 0 {
				last = ", last " + seconds(f.UnmappedAgo) + " ago"
			}
			all = append(all, finding{Result: warning, past: f.UnmappedAgo, Detail: fmt.Sprintf(
				"feed %s: the keys of %s were not known%s, so kinds were invalidated whole: its log has the column", f.Name, observe.Count(int(f.Unmapped), "row", "rows"), last,
			)})
		}
		if f.Retained >= muchLog {
			all = append(all, finding{Result: warning, Detail: fmt.Sprintf("feed %s: the database keeps %s of its log for it", f.Name, mib(f.Retained))})
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
	slices.SortFunc(rates, func(a, b rate) int { return cmp.Compare(b.gets, a.gets) })
	most, next := rates[0], rates[1]
	if most.gets < noise || most.gets < much*next.gets {
		return nil
	}
	detail := fmt.Sprintf("it has %.0f gets/s, the next one has %.0f", most.gets, next.gets)
	if most.hottest != "" {
		detail += fmt.Sprintf("; its hottest key is %q", most.hottest)
	}
	return []finding{{Check: "instance", Node: most.instance, Result: warning, Detail: detail}}
}

// hottest names the keys that all instances together are asked for most often. That is no trouble by itself.
func hottest(guards []*pagedGuard) []finding {
	rates := make(map[string]float64)
	for _, g := range guards {
		for _, hot := range g.Hot {
			rates[hot.Key] += hot.Rate
		}
	}
	keys := slices.SortedFunc(maps.Keys(rates), func(a, b string) int { return cmp.Or(cmp.Compare(rates[b], rates[a]), cmp.Compare(a, b)) })
	var said []string
	for _, key := range keys[:min(mostHot, len(keys))] {
		said = append(said, fmt.Sprintf("about %.0f gets/s for %q", rates[key], key))
	}
	if said == nil {
		return nil
	}
	return []finding{{Check: "hottest keys", Result: ok, Detail: strings.Join(said, ", ")}}
}

// seconds is a duration from the page, for people.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Millisecond).String()
}
