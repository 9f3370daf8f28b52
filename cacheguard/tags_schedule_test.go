package cacheguard

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/testing/expect"
)

// Every order of the steps of loads with a tag, of a writer that invalidates the tag, and of an eviction, on a model. With one load, the
// orders also run on the code itself.

// tagRules are the parts of the mechanism that a mutation takes out.
type tagRules struct {
	noProof       bool // the version of all tags is not read again
	proofTooEarly bool // it is read again before the version of the tag
	anyLast       bool // the invalidation removes it behind the version of the tag
	readAfter     bool // a known tag's version is read after the load
	keepVersion   bool // a version that is missing counts as the one before
}

// tagWorld is the state of source and Redis. Versions and leases are numbers; 0: there is none.
type tagWorld struct {
	source, anyTag, tag, lease, last int
	lost                             int // the version of the tag that was evicted
	entry                            struct{ value, tag int }
}

func (w *tagWorld) obtain(version *int) int {
	if *version == 0 {
		w.last++
		*version = w.last
	}
	return *version
}

// stale reports whether a hit would return a value that is older than the source.
func (w *tagWorld) stale(rule tagRules) bool {
	tag := w.tag
	if rule.keepVersion && tag == 0 {
		tag = w.lost
	}
	return w.entry.value != nothing && w.entry.tag == tag && w.entry.value != w.source
}

// aTaggedLoad is a load, in six steps.
type aTaggedLoad struct {
	known                    bool // the tag is known before
	step, lease              int
	anyBefore, anyAfter, tag int
	value                    int
}

const tagLoadSteps = 6

func (l *aTaggedLoad) next(w *tagWorld, rule tagRules) {
	l.step++
	switch l.step {
	case 1: // what is known is read before
		if l.known && !rule.readAfter {
			l.tag = w.obtain(&w.tag)
		}
		l.anyBefore = w.obtain(&w.anyTag)
	case 2:
		if w.lease == 0 {
			w.last++
			w.lease, l.lease = w.last, w.last
		}
	case 3:
		l.value = w.source
	case 4:
		if rule.proofTooEarly {
			l.anyAfter = w.anyTag
		} else if l.tag == 0 {
			l.tag = w.obtain(&w.tag)
		}
	case 5:
		if !rule.proofTooEarly {
			l.anyAfter = w.anyTag
		} else if l.tag == 0 {
			l.tag = w.obtain(&w.tag)
		}
	case 6:
		if l.lease == 0 || w.lease != l.lease {
			return
		}
		w.lease = 0
		if l.known || rule.noProof || l.anyBefore == l.anyAfter {
			w.entry.value, w.entry.tag = l.value, l.tag
		}
	}
}

const tagWriterSteps = 3

func (w *tagWorld) write(step int, rule tagRules) {
	switch {
	case step == 1:
		w.source = newOne
	case (step == 2) != rule.anyLast:
		w.anyTag = 0
	default:
		w.tag = 0
	}
}

// playTags runs an order, in which 0 is a step of the writer, 1 and 2 are of loads, and 3 evicts the version of the tag, and 4 that of
// all tags.
func playTags(order []int, known bool, rule tagRules) (w tagWorld, wrong bool) {
	w = tagWorld{source: oldOne}
	loads := [2]aTaggedLoad{{known: known}, {known: !known}}
	written := 0
	for _, who := range order {
		switch who {
		case 0:
			written++
			w.write(written, rule)
		case 1, 2:
			loads[who-1].next(&w, rule)
		case 3:
			w.lost, w.tag = w.tag, 0
		case 4:
			w.anyTag = 0
		}
		if written == tagWriterSteps && w.stale(rule) {
			wrong = true
		}
	}
	return w, wrong
}

// orders calls f with every order of that many steps of each.
func orders(left []int, f func([]int)) {
	var order []int
	var extend func()
	extend = func() {
		done := true
		for who := range left {
			if left[who] == 0 {
				continue
			}
			done = false
			left[who]--
			order = append(order, who)
			extend()
			order = order[:len(order)-1]
			left[who]++
		}
		if done {
			f(order)
		}
	}
	extend()
}

// checkTagOrders plays all orders of a writer, some loads, and an eviction or none.
func checkTagOrders(loads int, rule tagRules) (count int, wrong string) {
	for _, known := range []bool{false, true} {
		for _, evicts := range [][2]int{{0, 0}, {1, 0}, {0, 1}} {
			left := []int{tagWriterSteps, tagLoadSteps, tagLoadSteps * (loads - 1), evicts[0], evicts[1]}
			if loads > 1 && evicts != [2]int{} {
				continue // millions
			}
			orders(left, func(order []int) {
				count++
				if _, bad := playTags(order, known, rule); bad && wrong == "" {
					wrong = fmt.Sprintf("%v, known %v", order, known)
				}
			})
		}
	}
	return count, wrong
}

func TestNoOrderOfLoadsAndAnInvalidationOfTheirTagLeavesAStaleValue(t *testing.T) {
	t.Parallel()
	for loads, want := range map[int]int{1: 2 * (84 + 2*840), 2: 2 * 420_420} {
		count, wrong := checkTagOrders(loads, tagRules{})
		expect.Equal(t, "orders", count, want)
		expect.Equal(t, "wrong", wrong, "")
	}
}

func TestEachPartOfTheMechanismOfTagsIsNeeded(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]tagRules{
		"the second look at all tags":                      {noProof: true},
		"that look after the one at the tag":               {proofTooEarly: true},
		"the invalidation of all tags first":               {anyLast: true},
		"the look at a known tag before the load":          {readAfter: true},
		"that a missing version makes its entries invalid": {keepVersion: true},
	} {
		if _, wrong := checkTagOrders(1, rule); wrong == "" {
			t.Errorf("without %s nothing is wrong", name)
		} else {
			t.Logf("without %s: %s", name, wrong)
		}
	}
}

// tagStage runs an order of a load and a writer with the code.
type tagStage struct {
	g                *Guard
	r                *rebuild
	tag, source      string
	got              protocol.Acquired
	value            string
	stepped, written int
}

// write does the writer's next step.
func (s *tagStage) write(ctx context.Context) error {
	switch s.written++; s.written {
	case 1:
		s.source = "new"
	case 2:
		return s.g.versions.revokeAnyTag(ctx)
	case 3:
		return s.g.keys.Revoke(s.g.keys.TagKey(s.tag), "").Run(ctx, s.g.rdb).Err()
	}
	return nil
}

// load does the load's next step. The code takes steps 4 and 5 at once.
func (s *tagStage) load(ctx context.Context) (err error) {
	g, r := s.g, s.r
	switch s.stepped++; s.stepped {
	case 1:
		r.stamps = g.versions.stamper(ctx, r.job, r.unfit)
		r.stamps.ready(ctx)
	case 2:
		s.got, err = protocol.ParseAcquired(g.keys.Acquire(r.job.valueKey, protocol.Request{Token: r.token, Take: true}).Run(ctx, g.rdb))
	case 3:
		s.value = s.source
	case 4:
		loaded := loaded{value: &s.value, ttl: unset, tags: []string{s.tag}}
		stamps, failed := r.stamps.stamp(ctx, union(r.job.known, loaded.tags))
		if failed == nil {
			return g.keys.Fill(r.job.valueKey, r.prepare(ctx, loaded, s.got.Generation, stamps, nil)).Run(ctx, g.rdb).Err()
		}
		r.giveUp()
	}
	return err
}

func TestTheLoadsOfAGuardDoWhatTheModelOfTagsDoes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	g := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing, TTL: time.Hour}).guards[0]
	g.versions.used.Store(true)
	for _, known := range []bool{false, true} {
		orders([]int{tagWriterSteps, tagLoadSteps - 1}, func(order []int) {
			key := rand.Text()
			s := &tagStage{g: g, r: g.newRebuild(newJob(g, key, scope{}, returns("")), nil, nil), tag: rand.Text(), source: "old"}
			if known {
				s.r.job.known = []string{s.tag}
			}
			var modelled []int
			for _, who := range order {
				step := s.load
				if who == 0 {
					step = s.write
				}
				if err := step(ctx); err != nil {
					t.Fatal(err)
				}
				modelled = append(modelled, who)
				if who != 0 && s.stepped == 4 {
					modelled = append(modelled, who, who)
				}
			}
			w, _ := playTags(modelled, known, tagRules{})
			_, how, err := get(ctx, g, key, returns("new"))
			expect.Equal(t, fmt.Sprint(order, known, ": error"), err, nil)
			valid := w.entry.value != nothing && w.entry.tag == w.tag
			expect.Equal(t, fmt.Sprint(order, known, ": a hit"), how == Hit, valid)
		})
	}
}
