package admin

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/watch/observe"
)

// begin takes what there was before.
func (s *shown) begin(h *Handler) {
	s.series, s.sampled = make(map[seriesOf]*series), time.Now()
	for i, g := range h.guards {
		for _, c := range g.seen.Caches() {
			s.series[seriesOf{i, c.Name}] = &series{before: g.view.read(c.Name)}
		}
	}
}

// encoded is the state as JSON, at most half a second old.
func (s *shown) encoded(h *Handler) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.text != nil && now.Sub(s.made) < pause/4 {
		return s.text
	}
	text, err := json.Marshal(s.makeLocked(h, now))
	if err != nil {
		text = []byte(`{}`) // cannot be: it has no type that fails
	}
	s.made, s.text = now, text
	return text
}

func (s *shown) makeLocked(h *Handler, now time.Time) state {
	passed := now.Sub(s.sampled)
	due := passed >= pause-pause/8 // who asks every two seconds asks a little too early now and then
	if due {
		s.sampled, s.over = now, passed
	}
	all := state{
		Time: now, Over: s.over.Seconds(), Guards: []guardState{}, Lockers: []lockerState{}, Pages: []pagesState{},
		Feeds: feedsOf(h.feeds), Reports: reportsOf(h.reports),
	}
	for i := range h.guards {
		g := &h.guards[i]
		one := guardOf(g)
		for _, c := range g.seen.Caches() {
			samples, t := s.series[seriesOf{i, c.Name}], g.view.read(c.Name)
			if samples == nil {
				samples = new(series)
				s.series[seriesOf{i, c.Name}] = samples
			}
			if due {
				samples.add(t, now, passed)
			}
			one.Caches = append(one.Caches, cacheOf(c, t, samples, now))
		}
		all.Guards = append(all.Guards, one)
	}
	for _, l := range h.lockers {
		all.Lockers = append(all.Lockers, lockerOf(l, now))
	}
	for _, p := range h.pages {
		all.Pages = append(all.Pages, pagesOf(p))
	}
	return all
}

func guardOf(g *guard) guardState {
	stats, troubles := g.Stats(), g.seen.Troubles()
	one := guardState{
		Prefix: g.seen.Prefix, Instance: g.seen.Instance, Redis: g.seen.Server, Troubles: troublesOf(&troubles, &stats), Refused: troubles.RefusedAs, DeafAs: troubles.DeafAs, Happened: g.seen.Happened(),
		Loading: stats.Loading, MaxLoads: stats.MaxLoads, Queued: stats.Queued, Waiting: stats.Waiting, Pending: stats.Pending, Untold: int(stats.Of("refused_messages")),
		Breakers: stats.Breakers, Open: stats.BreakersOpen, SlowParts: stats.SlowParts, Hedged: uint64(stats.Of("hedged_loads_total")),
		Intents: stats.Intents, Oldest: stats.OldestIntent.Seconds(), Stands: troubles.Stands,
		Warming: stats.Warming, Refreshes: stats.FailedRefreshes,
		Local: stats.LocalEntries, LocalBytes: uint64(stats.Of("local_bytes")), Evictions: uint64(stats.Of("local_evictions_total")),
		Read: stats.BytesRead, Written: stats.BytesWritten, Caches: []cacheState{},
		Running: loadsOf(g.view.loads.longest()), Slowest: loadsOf(g.view.loads.slowest()), Hot: []hotState{},
	}
	for n := range stats.All() {
		one.Numbers = append(one.Numbers, numberState(n))
	}
	one.Tags, one.Keys = g.seen.Tags.Kinds(), g.seen.Keys.Kinds()
	one.NoTags, one.NoTagsAgo = mistyped(g.seen.Tags)
	one.NoKeys, one.NoKeysAgo = mistyped(g.seen.Keys)
	if troubles.Last["bypassed"] > 0 {
		one.Bypassed = "on this instance"
		if until := troubles.BypassedUntil; !until.IsZero() {
			one.Bypassed = "on all instances, until " + until.UTC().Format(time.RFC3339)
		}
	}
	one.Order = append([]string{}, slices.SortedFunc(maps.Keys(one.Troubles), byCause)...)
	if len(troubles.Brought) > 0 && len(one.Order) > 0 && slices.Contains(causes[:3], one.Order[0]) {
		one.Cause, one.Brought = one.Order[0], troubles.Brought
	}
	for _, hot := range g.view.hot.top() {
		key, cut := shorten(hot.key, longestShown)
		one.Hot = append(one.Hot, hotState{key, cut, hot.perSecond})
	}
	return one
}

// causes are the names of troubles that bring others with them, the first of all first.
var causes = []string{"outage", "slow", "refused", "pending"}

// byCause orders the names of troubles: causes before what follows from them, and the rest by name.
func byCause(a, b string) int {
	rank := func(name string) uint { return uint(slices.Index(causes, name)) } // of others: the largest
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// mistyped are the kinds that were invalidated lately, and that no load has had: how often, and how long ago.
func mistyped(k observe.Known) (counts map[string]uint64, ago map[string]float64) {
	counts, ago = make(map[string]uint64), make(map[string]float64)
	for kind, of := range k.Unknown() {
		if since := time.Since(of.Last); since < mistaken {
			counts[kind], ago[kind] = of.Times, since.Seconds()
		}
	}
	return counts, ago
}

func troublesOf(t *observe.Troubles, stats *cacheguard.Stats) map[string]float64 {
	all := make(map[string]float64)
	for name, lasts := range t.Last {
		if lasts > 0 {
			all[name] = lasts.Seconds()
		}
	}
	if stats.SlowParts == 0 {
		delete(all, "slow") // what was slow does not answer at all
	}
	if ago := time.Since(t.Refused); ago < recently {
		all["refused"] = ago.Seconds()
	}
	if stats.OldestIntent > standing {
		all["intent"] = stats.OldestIntent.Seconds()
	}
	if !stats.Subscribed && t.Last["deaf"] == 0 && t.Last["missed"] == 0 {
		all["deaf"] = 0 // it never was subscribed
	}
	return all
}

func cacheOf(c observe.Cache, t tallied, s *series, now time.Time) cacheState {
	last := s.last()
	one := cacheState{
		Name: c.Name, Ratio: ratio(last.served, last.asked), Ratios: s.ratios(), LoadTook: ratio(last.loading, last.loads),
		Answers: make(map[string]uint64), Failed: t.failed, Takeovers: t.takeovers.times, LeasesLost: t.leasesLost.times, Damaged: t.damaged.times,
		Unstorable: t.unstorable.times,
	}
	one.Lately, one.LatelyAgo = s.lately(&t, now)
	if f := c.Failing; f.For > 0 {
		one.Failing = &failingState{f.For.Seconds(), f.Loads, f.Failed, f.Last}
	}
	if last.seconds > 0 {
		one.Rate, one.Loads = last.asked/last.seconds, last.loads/last.seconds
	}
	var hits, all float64
	for word, name := range answered {
		one.Answers[name] = t.answers[word]
		if word < asked {
			all += float64(t.answers[word])
		}
		if word < served {
			hits += float64(t.answers[word])
		}
	}
	one.AllRatio = ratio(hits, all)
	return one
}

func loadsOf(loads []loaderRun) []loadState {
	all := []loadState{}
	for _, l := range loads {
		key, cut := shorten(l.Key, longestShown)
		all = append(all, loadState{key, cut || l.Cut, l.Keys, l.Took.Seconds(), l.Began.UTC().Format(time.RFC3339), l.Failed})
	}
	return all
}

func lockerOf(l observe.Locker, now time.Time) lockerState {
	held := l.Held()
	slices.SortFunc(held, func(a, b observe.Held) int { return a.Began.Compare(b.Began) })
	one := lockerState{
		Kind: l.Kind, Prefix: l.Prefix, Instance: l.Instance, Permits: l.Permits, Servers: l.Servers,
		Deaf: l.Up != nil && !l.Up(), Revocable: l.Revoke != nil, Held: len(held), Locks: []lockState{},
	}
	for _, lock := range held[:min(mostLocks, len(held))] {
		name, cut := shorten(lock.Name, longestShown)
		one.Locks = append(one.Locks, lockState{
			name, cut, lock.Mode, lock.Fence, lock.Token, now.Sub(lock.Began).Seconds(), lock.Trusted.Sub(now).Seconds(),
		})
	}
	return one
}

// expected refuses a request for a host that is not this server's, as far as anybody has said.
func (h *Handler) expected(r *http.Request) error {
	host := strings.TrimSuffix(hostOf(r.Host), ".")
	_, err := netip.ParseAddr(host)
	if err == nil || slices.ContainsFunc(append([]string{"localhost"}, h.hosts...), func(known string) bool {
		return known == "*" || host != "" && strings.EqualFold(known, host)
	}) {
		return nil
	}
	return refuse(http.StatusMisdirectedRequest,
		"this page is not for the host %q: ask for it by an address or as localhost, or name the host in Config.Hosts", cut(host))
}

// hostOf is a Host without its port.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
