package admin

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/run/observe"
)

// begin takes what there was before.
func (s *shown) begin(h *Handler) {
	s.series, s.sampled = make(map[seriesOf]*series), time.Now()
	for i, g := range h.guards {
		for _, t := range g.seen.Caches() {
			s.series[seriesOf{i, t.Name}] = &series{before: t}
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
		for _, t := range g.seen.Caches() {
			samples := s.series[seriesOf{i, t.Name}]
			if samples == nil {
				samples = new(series)
				s.series[seriesOf{i, t.Name}] = samples
			}
			if due {
				samples.add(t, now, passed)
			}
			one.Caches = append(one.Caches, cacheOf(g, t, samples, now))
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
	running, _ := g.seen.Loads.Running()
	one := guardState{
		Prefix: g.seen.Prefix, Instance: g.seen.Instance, Redis: g.seen.Server, Troubles: troublesOf(&troubles, &stats), Refused: troubles.RefusedAs, DeafAs: troubles.DeafAs, Happened: g.seen.Happened(),
		Loading: stats.Loading, MaxLoads: stats.MaxLoads, Queued: stats.Queued, Waiting: stats.Waiting, Pending: stats.Pending, Untold: stats.RefusedMessages,
		Breakers: stats.Breakers, Open: stats.BreakersOpen, SlowParts: stats.SlowParts, Hedged: stats.Hedged, Replaced: stats.Replaced, NotReplaced: stats.NotReplaced,
		Intents: stats.Intents, Oldest: stats.OldestIntent.Seconds(), Stands: troubles.Stands,
		Warming: stats.Warming, Refreshes: stats.FailedRefreshes, Altered: stats.Altered, Undeclared: stats.Undeclared, Shadow: shadowOf(&stats.Shadowed),
		Local: stats.LocalEntries, LocalBytes: stats.LocalBytes, Evictions: stats.LocalEvictions,
		Read: stats.BytesRead, Written: stats.BytesWritten, Caches: []cacheState{},
		Running: loadsOf(running), Slowest: loadsOf(g.seen.Loads.Slowest()), Hot: []hotState{},
	}
	one.Tags, one.Keys = g.seen.Tags.Kinds(), g.seen.Keys.Kinds()
	one.NoTags, one.NoTagsAgo = mistyped(g.seen.Tags)
	one.NoKeys, one.NoKeysAgo = mistyped(g.seen.Keys)
	if troubles.Bypassed > 0 {
		one.Bypassed = "on this instance"
		if until := troubles.BypassedUntil; !until.IsZero() {
			one.Bypassed = "on all instances, until " + until.UTC().Format(time.RFC3339)
		}
	}
	one.Order = append([]string{}, slices.SortedFunc(maps.Keys(one.Troubles), observe.ByCause)...)
	for _, hot := range g.seen.Hot() {
		key, cut := shorten(hot.Key, longestShown)
		one.Hot = append(one.Hot, hotState{key, cut, hot.PerSecond})
	}
	return one
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

func shadowOf(s *cacheguard.Shadowed) *shadowState {
	if *s == (cacheguard.Shadowed{}) {
		return nil
	}
	hits := float64(s.Hits)
	return &shadowState{s.Hits, s.Missed, s.Failed, s.Differed, s.Old, ratio(hits, hits+float64(s.Missed)), ratio(s.Took.Seconds(), hits)}
}

func troublesOf(t *observe.Troubles, stats *cacheguard.Stats) map[string]float64 {
	all := make(map[string]float64)
	for name, lasts := range map[string]time.Duration{
		"outage": t.Outage, "pending": t.Pending, "deaf": t.Deaf, "saturated": t.Saturated, "bypassed": t.Bypassed,
		"slow": t.Slow, "missed": t.Missed, "mute": t.Mute, "fleet": t.FleetSaturated,
	} {
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
	if !stats.Subscribed && t.Deaf == 0 && t.Missed == 0 {
		all["deaf"] = 0 // it never was subscribed
	}
	return all
}

func cacheOf(g *guard, t observe.Tallied, s *series, now time.Time) cacheState {
	last := s.last()
	one := cacheState{
		Name: t.Name, Ratio: ratio(last.served, last.asked), Ratios: s.ratios(), LoadTook: ratio(last.loading, last.loads),
		Answers: make(map[string]uint64), Failed: t.Failed, Takeovers: t.Takeovers, LeasesLost: t.LeasesLost, Damaged: t.Damaged,
		Unstorable: t.Unstorable, Outdated: t.Outdated,
	}
	one.Lately, one.LatelyAgo = s.lately(now)
	if f := t.Failing; f.For > 0 {
		one.Failing = &failingState{f.For.Seconds(), f.Loads, f.Failed, f.Last}
	}
	if last.seconds > 0 {
		one.Rate, one.Loads = last.asked/last.seconds, last.loads/last.seconds
	}
	var hits, all float64
	for word, name := range g.seen.Words {
		one.Answers[name] = t.Answers[word]
		if word < asked {
			all += float64(t.Answers[word])
		}
		if word < served {
			hits += float64(t.Answers[word])
		}
	}
	one.AllRatio = ratio(hits, all)
	return one
}

func loadsOf(loads []observe.Load) []loadState {
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
