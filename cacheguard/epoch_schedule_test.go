package cacheguard

import (
	"fmt"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Every order of the steps of loads, of a reader with a local tier, of a caller that waits for another instance's load, of a writer that
// invalidates a tag, a kind or everything, and of an eviction, on a model. epoch_stage_test.go runs orders on the code itself.

// The epochs of the model.
const (
	ofPrefix = iota
	ofKind
	ofTag
	ofAnyTag
	allEpochs
)

// epochRules are the parts of the mechanism that a mutation takes out.
type epochRules struct {
	noProof     bool // the epoch of all tags is not looked at again
	anySurvives bool // the invalidation of a tag leaves it
	readAfter   bool // epochs are read after the load
	keepLost    bool // an epoch that is missing counts as the one before
	pushOnTrust bool // a waiter does not judge what is sent to it
	markAfter   bool // the state of the tier is noted after the epochs were read
	remakeSame  bool // an epoch that was removed is made again as it was
}

type stampOf [ofAnyTag]int

// epochWorld is the state of source, Redis and a local tier. Epochs and leases are numbers; 0: there is none.
type epochWorld struct {
	source, lease, last int
	epochs, first, lost [allEpochs]int
	entry               struct {
		value int
		stamp stampOf
	}
	pushed  bool // to the waiters
	waiting bool
	tier    struct{ value, mark, now int }
}

func (w *epochWorld) make(name int, rule epochRules) int {
	if w.epochs[name] == 0 {
		w.last++
		w.epochs[name] = w.last
		if rule.remakeSame && w.first[name] != 0 {
			w.epochs[name] = w.first[name]
		} else if w.first[name] == 0 {
			w.first[name] = w.last
		}
	}
	return w.epochs[name]
}

func (w *epochWorld) current(rule epochRules) (s stampOf) {
	for name := range s {
		if s[name] = w.epochs[name]; rule.keepLost && s[name] == 0 {
			s[name] = w.lost[name]
		}
	}
	return s
}

// anEpochLoad is a load, in six steps. If another load has the lease, it waits for what that sends.
type anEpochLoad struct {
	known  bool // the tag is known before
	late   bool // it began after the writer had returned
	step   int
	lease  int
	waits  bool
	asked  stampOf
	anyTag int
	stamp  stampOf
	proven bool
	value  int
	wrong  bool
}

const epochLoadSteps = 6

func (l *anEpochLoad) next(w *epochWorld, rule epochRules, over bool) {
	switch l.step++; l.step {
	case 1:
		l.asked, l.late = w.current(rule), over
	case 2:
		if w.lease == 0 {
			w.last++
			w.lease, l.lease = w.last, w.last
		} else {
			l.waits, w.waiting = true, true
		}
	case 3:
		if l.waits {
			l.asked = w.current(rule)
			return
		}
		if !rule.readAfter {
			l.ready(w, rule)
		}
		l.anyTag = w.make(ofAnyTag, rule)
	case 4:
		l.value = w.source
	case 5:
		if rule.readAfter && !l.waits {
			l.ready(w, rule)
		}
		if l.proven = l.stamp[ofTag] != 0; !l.proven && !l.waits { // in one step
			now := w.make(ofAnyTag, rule)
			l.stamp[ofTag] = w.make(ofTag, rule)
			l.proven = rule.noProof || now == l.anyTag
		}
	case 6:
		l.end(w, rule)
	}
}

// ready makes what was missing.
func (l *anEpochLoad) ready(w *epochWorld, rule epochRules) {
	for name := range l.stamp {
		if name == ofTag && !l.known {
			continue
		}
		if l.stamp[name] = l.asked[name]; l.stamp[name] == 0 || rule.readAfter {
			l.stamp[name] = w.make(name, rule)
		}
	}
}

func (l *anEpochLoad) end(w *epochWorld, rule epochRules) {
	switch {
	case l.waits:
		if w.pushed && (rule.pushOnTrust || w.entry.stamp == l.asked) {
			l.wrong = l.late && w.entry.value == oldOne
		}
	case l.lease != 0 && l.lease == w.lease:
		w.lease = 0
		if l.proven {
			w.entry.value, w.entry.stamp = l.value, l.stamp
			w.pushed = w.waiting
		}
	}
}

// anEpochReader is a Get with a local tier, in four steps. The value and the epochs come in one request, which a cluster may answer in two.
type anEpochReader struct {
	step, mark, value int
	late              bool
	stamp, current    stampOf
	wrong             bool
}

const epochReaderSteps = 4

func (r *anEpochReader) next(w *epochWorld, rule epochRules, over bool) {
	switch r.step++; r.step {
	case 1:
		r.mark, r.late = w.tier.now, over
	case 2:
		r.value, r.stamp = w.entry.value, w.entry.stamp
	case 3:
		r.current = w.current(rule)
	case 4:
		if rule.markAfter {
			r.mark = w.tier.now
		}
		if r.value != nothing && r.stamp == r.current {
			r.wrong = r.late && r.value == oldOne
			w.tier.value, w.tier.mark = r.value, r.mark
		}
	}
}

const epochWriterSteps = 3

func (w *epochWorld) write(step, name int, rule epochRules) {
	switch step {
	case 1:
		w.source = newOne
	case 2:
		w.epochs[name] = 0
		if name == ofTag && !rule.anySurvives {
			w.epochs[ofAnyTag] = 0
		}
	case 3:
		w.tier.now++
	}
}

// stale reports whether a hit, from Redis or the tier, would return a value that is older than the source.
func (w *epochWorld) stale(rule epochRules) bool {
	return w.entry.value == oldOne && w.entry.stamp == w.current(rule) ||
		w.tier.value == oldOne && w.tier.mark == w.tier.now
}

// The parts of an order.
const (
	aWriter = iota
	load1
	load2
	aReader
	anEviction
	actors
)

// epochCase is what is invalidated, and whether the loads know the tag before.
type epochCase struct {
	name    int
	known   bool
	evicted int
}

func playEpochs(order []int, c epochCase, rule epochRules) (w epochWorld, wrong bool) {
	w = epochWorld{source: oldOne}
	loads := [2]anEpochLoad{{known: c.known}, {known: !c.known}}
	var reader anEpochReader
	written := 0
	for _, who := range order {
		over := written == epochWriterSteps
		switch who {
		case aWriter:
			written++
			w.write(written, c.name, rule)
		case load1, load2:
			loads[who-load1].next(&w, rule, over)
		case aReader:
			reader.next(&w, rule, over)
		case anEviction:
			w.lost[c.evicted], w.epochs[c.evicted] = w.epochs[c.evicted], 0
		}
		wrong = wrong || written == epochWriterSteps && w.stale(rule)
	}
	return w, wrong || loads[0].wrong || loads[1].wrong || reader.wrong
}

// orders calls f, which computes, with every order of that many steps of each.
func orders(left []int, f func([]int)) {
	defer expect.Turn()()
	some(1, left, func(_ int, order []int) { f(order) })
}

// some calls f with the orders whose numbers every divides, and passes by the others without making them.
func some(every int, left []int, f func(n int, order []int)) {
	var order []int
	n := 0
	var extend func()
	extend = func() {
		if every > 1 {
			if count := countOrders(left); n/every == (n+count)/every {
				n += count
				return
			}
		}
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
			n++
			f(n, order)
		}
	}
	extend()
}

// sparsely is how many orders there are for each that is played on a real Redis; by default, 23 times as many. What they divide, 2 and 3 do not.
func sparsely(every int) int { return expect.Samples(23, 1) * every }

// countOrders is how many orders of that many steps there are.
func countOrders(left []int) int {
	count, steps := 1, 0
	for _, of := range left {
		for i := 1; i <= of; i++ {
			steps++
			count = count * steps / i
		}
	}
	return count
}

func TestSomeOrdersAreThoseWhoseNumbersAreDivided(t *testing.T) {
	t.Parallel()
	var all, want, got []string
	orders([]int{3, 0, 2, 4}, func(order []int) { all = append(all, fmt.Sprint(order)) })
	expect.Equal(t, "orders", countOrders([]int{3, 0, 2, 4}), len(all))
	for i := 6; i < len(all); i += 7 {
		want = append(want, fmt.Sprint(i+1, " ", all[i]))
	}
	some(7, []int{3, 0, 2, 4}, func(n int, order []int) { got = append(got, fmt.Sprint(n, " ", order)) })
	expect.Equal(t, "some", fmt.Sprint(got), fmt.Sprint(want))
}

// epochOrders are what is played: how many steps of each, in which cases.
var epochOrders = []struct {
	of    [actors]int
	cases []epochCase
	count int // of the orders of each case
}{
	{[actors]int{epochWriterSteps, epochLoadSteps, epochLoadSteps, 0, 0}, []epochCase{{name: ofTag}, {name: ofKind}}, 420_420}, // one knows the tag
	{[actors]int{epochWriterSteps, epochLoadSteps, 0, epochReaderSteps, 0}, []epochCase{
		{name: ofTag}, {name: ofTag, known: true}, {name: ofKind}, {name: ofPrefix},
	}, 60_060},
	{[actors]int{epochWriterSteps, epochLoadSteps, 0, 0, 1}, []epochCase{
		{name: ofTag, evicted: ofTag}, {name: ofTag, known: true, evicted: ofTag}, {name: ofTag, evicted: ofAnyTag},
		{name: ofKind, evicted: ofKind}, {name: ofPrefix, evicted: ofPrefix}, {name: ofPrefix, evicted: ofTag, known: true},
	}, 840},
}

// checkEpochs plays all orders, and returns one with something wrong.
func checkEpochs(t *testing.T, rule epochRules) (wrong string) {
	t.Helper()
	for _, o := range epochOrders {
		for _, c := range o.cases {
			count := 0
			orders(o.of[:], func(order []int) {
				if count++; wrong == "" {
					if _, bad := playEpochs(order, c, rule); bad {
						wrong = fmt.Sprintf("%v, %+v", order, c)
					}
				}
			})
			expect.Equal(t, "orders", count, o.count)
			if wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

func TestNoOrderOfLoadsReadersAndAnInvalidationOfManyLeavesAStaleValue(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "wrong", checkEpochs(t, epochRules{}), "")
}

func TestEachRuleOfTheEpochsIsNeeded(t *testing.T) {
	t.Parallel()
	for name, rule := range expect.Some(3, map[string]epochRules{
		"the second look at the epoch of all tags":               {noProof: true},
		"that an invalidation of a tag ends it, too":             {anySurvives: true},
		"epochs from before the load":                            {readAfter: true},
		"that a missing epoch makes its entries invalid":         {keepLost: true},
		"that a waiter judges what is sent to it":                {pushOnTrust: true},
		"the state of the tier from before the epochs were read": {markAfter: true},
		"that no epoch is made twice":                            {remakeSame: true},
	}) {

		if wrong := checkEpochs(t, rule); wrong == "" {
			t.Errorf("without %s nothing is wrong", name)
		} else {
			t.Logf("without %s: %s", name, wrong)
		}
	}
}
