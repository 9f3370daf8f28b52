package cacheguard

import (
	"fmt"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// Every order of the steps of loads, of a reader with a local tier, of a transaction that intends, commits, and is done
// or dies, and of an eviction, on a model of a key. intend_stage_test.go runs orders on the scripts. The epochs of tags
// have a model in intend_tag_schedule_test.go.

// intentRules are the parts of the mechanism that a mutation takes out.
type intentRules struct {
	noCut      bool // values from before the intent last as they did
	noMark     bool // leases from before it are not marked
	noBound    bool // fills store for the whole TTL
	noEvidence bool // an intent is forgotten at its end, before the TTLs of what it bounds are over
	noRefusal  bool // a marked lease may store though no intent is known
	lastEnds   bool // of several intents, the last one to end counts
	noNotice   bool // local tiers do not hear of the intent
	tierKeeps  bool // local tiers keep what ends with an intent
	leaseStays bool // Done removes the value alone
}

// intentCase is what else is the case.
type intentCase struct {
	start  int  // what is cached at first
	dies   bool // the transaction's process does, after the commit: the intent is not done, and expires
	beside bool // another intent stands all the time
}

// The states of the intent of the model.
const (
	noIntent = iota
	intentStands
	intentOver // by the clock; the TTLs may be late
)

// intentWorld is the state of source, Redis and a local tier.
type intentWorld struct {
	source, value, intent int
	lease, last           int
	ends                  bool // the value does, with the intent
	marked                bool // the lease is, and ends with the intent
	beside                bool // another intent stands
	tier                  struct{ value, mark, now int }
}

// limited returns whether what is stored now ends with the intent, and whether any is known. It removes what an expired
// one leaves.
func (w *intentWorld) limited(rule intentRules) (bounded, known bool) {
	if w.intent == intentOver {
		w.intent, w.value, w.lease, w.marked, w.ends = noIntent, nothing, 0, false, false
	}
	return w.intent == intentStands && !(rule.lastEnds && w.beside), w.intent == intentStands || w.beside
}

// anIntentLoad is a load in three steps: it takes the lease, reads the source, and stores.
type anIntentLoad struct{ step, lease, value int }

const intentLoadSteps = 3

func (l *anIntentLoad) next(w *intentWorld, rule intentRules) {
	switch l.step++; l.step {
	case 1:
		_, known := w.limited(rule)
		if w.lease == 0 && w.value == nothing {
			w.last++
			w.lease, l.lease, w.marked = w.last, w.last, known
		}
	case 2:
		l.value = w.source
	case 3:
		if l.lease == 0 || l.lease != w.lease {
			return
		}
		bounded := false
		if w.marked {
			if w.intent == intentOver { // acquire removes the rest
				w.lease = 0
				return
			}
			var known bool
			if bounded, known = w.limited(rule); !known && !rule.noRefusal {
				w.lease = 0
				return
			}
		}
		w.value, w.lease, w.marked = l.value, 0, false
		w.ends = bounded && !rule.noBound
	}
}

// anIntentReader is a Get with a local tier, in three steps.
type anIntentReader struct {
	step, mark, value int
	ends, late, wrong bool
}

const intentReaderSteps = 3

func (r *anIntentReader) next(w *intentWorld, rule intentRules, over bool) {
	switch r.step++; r.step {
	case 1:
		r.mark, r.late = w.tier.now, over
	case 2:
		r.value, r.ends = w.value, w.ends
	case 3:
		r.wrong = r.late && r.value == oldOne
		if !r.ends || rule.tierKeeps {
			w.tier.value, w.tier.mark = r.value, r.mark
		}
	}
}

// The steps of the transaction: it announces the intent, commits, and is done; or the intent ends by the clock, and
// then Redis has removed what ended with it.
const intentWriterSteps = 4

func (w *intentWorld) write(step int, c intentCase, rule intentRules) {
	switch {
	case step == 1:
		w.limited(rule)
		w.intent, w.beside = intentStands, c.beside
		bounded, _ := w.limited(rule)
		w.ends = w.ends || w.value != nothing && bounded && !rule.noCut
		w.marked = w.marked || w.lease != 0 && !rule.noMark
		if !rule.noNotice {
			w.tier.now++
		}
	case step == 2:
		w.source = newOne
	case step == 3 && c.dies && rule.noEvidence:
		w.intent = noIntent
	case step == 3 && c.dies && w.intent == intentStands:
		w.intent = intentOver
	case step == 4 && c.dies:
		if w.ends {
			w.value, w.ends = nothing, false
		}
		// A marked lease is gone, too, unless it began since.
		if w.intent == intentOver {
			w.limited(rule)
		}
	case step == 4:
		w.intent, w.value, w.ends = noIntent, nothing, false
		if !rule.leaseStays {
			w.lease, w.marked = 0, false
		}
		w.tier.now++
	}
}

func playIntents(order []int, c intentCase, rule intentRules) (wrong bool) {
	w := intentWorld{source: oldOne, value: c.start}
	var loads [2]anIntentLoad
	var reader anIntentReader
	written := 0
	for _, who := range order {
		over := written == intentWriterSteps
		switch who {
		case aWriter:
			written++
			w.write(written, c, rule)
		case load1, load2:
			loads[who-load1].next(&w, rule)
		case aReader:
			reader.next(&w, rule, over)
		case anEviction:
			if !c.dies || loads[0].lease != 0 { // a load that begins after the eviction, and before the death, is not promised anything
				w.intent, w.beside = noIntent, false
			}
		}
		if written == intentWriterSteps && (w.value == oldOne || w.tier.value == oldOne && w.tier.mark == w.tier.now) {
			wrong = true
		}
	}
	return wrong || reader.wrong
}

var intentCases = []intentCase{
	{}, {dies: true}, {beside: true}, {dies: true, beside: true},
	{start: oldOne}, {start: oldOne, dies: true}, {start: oldOne, dies: true, beside: true},
}

// intentOrders are what is played: how many steps of each, in which cases.
var intentOrders = []struct {
	of    [actors]int
	cases []intentCase
	count int
}{
	{[actors]int{intentWriterSteps, intentLoadSteps, intentLoadSteps, 0, 0}, intentCases, 4200},
	{[actors]int{intentWriterSteps, intentLoadSteps, 0, intentReaderSteps, 0}, intentCases, 4200},
	{[actors]int{intentWriterSteps, intentLoadSteps, intentLoadSteps, intentReaderSteps, 0}, intentCases[3:4], 1_201_200},
	{[actors]int{intentWriterSteps, intentLoadSteps, 0, intentReaderSteps, 1}, []intentCase{{}, {start: oldOne}, {beside: true}, {dies: true}}, 46_200},
}

func checkIntents(t *testing.T, rule intentRules) (wrong string) {
	t.Helper()
	for _, o := range intentOrders {
		for _, c := range o.cases {
			count := 0
			orders(o.of[:], func(order []int) {
				if count++; wrong == "" && playIntents(order, c, rule) {
					wrong = fmt.Sprintf("%v, %+v", order, c)
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

func TestNoOrderOfLoadsReadersAndATransactionLeavesAStaleValue(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "wrong", checkIntents(t, intentRules{}), "")
}

func TestEachRuleOfTheIntentsIsNeeded(t *testing.T) {
	t.Parallel()
	for name, rule := range expect.Some(3, map[string]intentRules{
		"that values from before it end with an intent": {noCut: true},
		"that leases from before it are marked":         {noMark: true},
		"that what is stored ends with it":              {noBound: true},
		"that its end is remembered for a while":        {noEvidence: true},
		"that the first to end counts":                  {lastEnds: true},
		"that local tiers hear of it":                   {noNotice: true},
		"that local tiers keep nothing that ends":       {tierKeeps: true},
		"that Done removes leases":                      {leaseStays: true},
		"that a marked lease needs a known intent":      {noRefusal: true},
	}) {

		if wrong := checkIntents(t, rule); wrong == "" {
			t.Errorf("without the rule %s nothing is wrong", name)
		} else {
			t.Logf("without the rule %s: %s", name, wrong)
		}
	}
}
