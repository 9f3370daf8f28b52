package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/clock"
	"github.com/cacheguard/go/internal/epoch"
	"github.com/cacheguard/go/internal/observe"
	"github.com/cacheguard/go/internal/tier"
)

// hottest is how many hot keys package admin shows.
const hottest = 16

// observer counts for package admin. A Guard has one once that has asked; before, a hit only loads a pointer.
type observer struct {
	loads  observe.Loads
	hot    *tier.HotKeys
	others observe.Tally // of keys of no Cache
}

// words are what answers are counted as.
var words = []string{
	string(Hit), string(Local), string(Stale), string(Negative), string(Loaded), string(Shared), string(Bypassed), "missed", "left", "error",
}

// wordOf is the place of an answer in words.
func wordOf(how Outcome, err error) int {
	if err != nil {
		switch {
		case errors.Is(err, ErrNotFound) && how != "":
		case errors.Is(err, ErrNotCached):
			return 7
		case errors.Is(err, context.Canceled):
			return 8
		default:
			return 9
		}
	}
	switch how {
	case Hit:
		return 0
	case Local:
		return 1
	case Stale:
		return 2
	case Negative:
		return 3
	case Loaded:
		return 4
	case Shared:
		return 5
	case Bypassed:
		return 6
	}
	return 9
}

// observed is for package admin.
func (g *Guard) observed() observe.Guard {
	if g == nil {
		return observe.Guard{}
	}
	o := &observer{hot: tier.NewHotKeys(hottest, clock.Clock{})}
	if !g.observer.CompareAndSwap(nil, o) {
		o = g.observer.Load()
	}
	return observe.Guard{
		Prefix: g.cfg.Prefix, Instance: g.cfg.Instance, Words: words, Loads: &o.loads, Hot: o.hot.Top,
		Caches:   func() []observe.Tallied { return o.tallied(&g.kinds) },
		Troubles: g.journal.troubles,
		InvalidateCache: func(ctx context.Context, name string) error {
			if g.kinds.byName(name) == nil {
				return fmt.Errorf("cacheguard: there is no Cache %q", name)
			}
			return g.invalidateNames(ctx, []string{epoch.OfKind(name)})
		},
	}
}

// tallied returns the counts, first of keys without a Cache, then of each Cache, by name.
func (o *observer) tallied(ks *kinds) []observe.Tallied {
	all := []observe.Tallied{o.others.Read("")}
	for _, k := range ks.all() {
		all = append(all, k.tally.Read(k.name))
	}
	return all
}

// byName returns the kind; nil: there is none.
func (ks *kinds) byName(name string) *kind {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	return ks.named[name]
}

// all are the kinds, by name.
func (ks *kinds) all() (all []*kind) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	for _, k := range ks.named {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *kind) int { return strings.Compare(a.name, b.name) })
	return all
}

// answered counts an answer to a call with the policy; nil: the Guard's ordinary one. This and the methods that follow do nothing
// without an observer.
func (o *observer) answered(p *policy, key string, how Outcome, err error) {
	if o != nil {
		o.count(p, key, how, err)
	}
}

func (o *observer) count(p *policy, key string, how Outcome, err error) {
	o.tallyOf(p).Answers.Add(wordOf(how, err))
	o.hot.Note(key)
}

// tallyOf is where to count what belongs to the policy.
func (o *observer) tallyOf(p *policy) *observe.Tally {
	if p == nil || p.kind == nil {
		return &o.others
	}
	return &p.kind.tally
}

// tallyFor is where to count what happens to a key; nil: nobody looks.
func (o *observer) tallyFor(ks *kinds, key string) *observe.Tally {
	if o == nil {
		return nil
	}
	if name, _, found := strings.Cut(key, ":"); found {
		if k := ks.byName(name); k != nil {
			return &k.tally
		}
	}
	return &o.others
}

// loadBegins notes that a loader begins to run, for loadEnds; nil: nobody looks.
func (o *observer) loadBegins(key string, keys int) *observe.Load {
	if o == nil {
		return nil
	}
	return o.loads.Begin(key, keys)
}

func (o *observer) loadEnds(load *observe.Load, err error) {
	if load != nil {
		o.loads.End(load, failed(err))
	}
}

// countLoad counts what a loader returned for a key.
func (o *observer) countLoad(p *policy, took time.Duration, err error) {
	if o == nil {
		return
	}
	t := o.tallyOf(p)
	t.Loads.Add(1)
	t.Nanos.Add(uint64(max(took, 0)))
	if failed(err) {
		t.Failed.Add(1)
	}
}

// failed reports whether a loader's error is a failure: neither absence, nor that nobody waits any more.
func failed(err error) bool {
	return err != nil && !absentAlone(err) && !errors.Is(err, context.Canceled)
}
