package middleware

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Eight instances, and 25 clients of each, ask for a new URL at once.
func TestOneBuildsForAllWhileAPageIsNotYetAdmitted(t *testing.T) {
	t.Parallel()
	const instances, clients = 8, 25
	for name, limits := range map[string]Limits{"Admit": {Admit: time.Hour}, "Pages": {Pages: 1}} {
		p := newPage(says("page", fresh))
		f := newFleet(t, instances, Config{Limits: limits}, p)
		for i := range instances {
			f.do(i, http.MethodGet, "/new?q=another")
		}
		f.stored()
		p.held()
		before := p.calls.Load()
		var all []<-chan answer
		for i := range instances * clients {
			all = append(all, f.async(i%instances, "/new?q=1"))
		}
		f.joins(instances * (clients - 1))
		f.waits("/new?q=1", instances-1)
		close(p.hold)
		for _, c := range all {
			expect.Equal(t, name+": page", (<-c).body, "page")
		}
		expect.Equal(t, name+": calls", p.calls.Load()-before, 1)
	}
}

func TestHitsAndRenewalsCountAsUse(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(f *fleet, i int){
		"hits":     func(f *fleet, i int) { f.do(i, http.MethodGet, "/hot?q=1") },
		"renewals": func(f *fleet, i int) { f.do(i, http.MethodGet, "/hot?q=1", "Cache-Control: no-cache") },
	} {
		const instances = 4
		p := newPage(says("page", fresh))
		f := newFleet(t, instances, Config{Limits: Limits{Admit: time.Hour}}, p)
		f.warm("/hot?q=1")
		f.warm("/hot?q=1")
		for i := range instances {
			use(f, i)
			use(f, i)
			f.stored()
		}
		expect.ErrorIs(t, f.invalidate("/hot?q=1"))
		before := p.calls.Load()
		for i := range instances {
			f.do(instances-1-i, http.MethodGet, "/hot?q=1")
			f.stored()
		}
		expect.Equal(t, name+": calls", p.calls.Load()-before, 1)
	}
}

// A client asks for a hundred queries that nobody asks for again.
func TestWhatIsUsedDrivesOutWhatIsNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits Limits
		ask    func(f *fleet, i int) answer
	}{
		"pages": {Limits{Pages: 100}, func(f *fleet, i int) answer { return f.get(fmt.Sprint("/list?page=", i)) }},
		"variants": {Limits{Variants: 100}, func(f *fleet, i int) answer {
			return f.get("/list", fmt.Sprint("X-Device: ", i))
		}},
	} {
		p := newPage(says("page", "Cache-Control: max-age=36000", "Vary: X-Device")) // a busy machine takes minutes
		f := newFleet(t, 1, Config{Limits: c.limits}, p)
		for i := range 101 {
			c.ask(f, 1000+i)
		}
		f.stored()
		before := p.calls.Load()
		for range 10 {
			c.ask(f, 1)
			f.stored()
		}
		expect.Equal(t, name+": calls", p.calls.Load()-before, 2)
		for i := range expect.Samples(200, 500) { // each once: none of them is worth it
			c.ask(f, 10_000+i)
		}
		expect.Equal(t, name+": it stays", isHit(c.ask(f, 1)), true)
		var groups []int
		for _, c := range []*census{&f.caches[0].limits.pages, &f.caches[0].limits.variants} {
			c.mu.Lock()
			for _, members := range c.groups {
				groups = append(groups, len(members))
			}
			c.mu.Unlock()
		}
		expect.Equal(t, name+": the bound holds", fmt.Sprint(groups), "[100]")
	}
}

func TestACensusIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	c := newCensus(time.Hour)
	for i := range 2*maxCounted + 1 {
		group := strconv.Itoa(i)
		c.use(now, group, "")
		expect.Equal(t, "admitted", c.admits(group, "", 1), true)
	}
	expect.Equal(t, "bounded", len(c.young)+len(c.old) <= 2*maxCounted && len(c.groups) <= 2*maxCounted, true)
	for i, uses := range []int{1, 2, 2, 1} { // at 0 h, 1 h, 2 h and 4 h
		c.use(now.Add([]time.Duration{0, time.Hour, 2 * time.Hour, 4 * time.Hour}[i]), "last", "")
		expect.Equal(t, fmt.Sprint("uses ", i), c.uses("last", ""), uses)
	}
}
