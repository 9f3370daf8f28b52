package cacheguard

import (
	"fmt"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

// The model of epoch_schedule_test.go, with a transaction in place of the writer: it announces an intent on the tag, commits, and is done; or it
// dies, the intent ends by the clock, and then Redis has removed the epochs that end with it.

const tagWriterSteps = 4

// tagRules are the parts of the mechanism that a mutation takes out.
type tagRules struct {
	noCut      bool // epochs from before the intent last as they did
	makesLong  bool // an epoch that is made under an intent lasts as usual
	anyLasts   bool // there is no intent on all tags together
	noEvidence bool // an intent is forgotten at its end, before the TTLs of what it bounds are over
	noNotice   bool // local tiers do not hear of the intent
	tierKeeps  bool // local tiers keep what ends with an intent
}

// tagWorld is the world of the model, with an intent on the tag.
type tagWorld struct {
	epochWorld
	rule   tagRules
	intent int
	ends   [allEpochs]bool
}

var underIntent = [...]int{ofTag, ofAnyTag}

// settle removes what an intent that has expired leaves, as make.lua does.
func (w *tagWorld) settle() {
	if w.intent != intentOver {
		return
	}
	for _, name := range underIntent {
		if name == ofTag || !w.rule.anyLasts {
			w.epochs[name], w.ends[name] = 0, false
		}
	}
	w.intent = noIntent
}

// made notes which of the epochs that were made in a step end with the intent.
func (w *tagWorld) made(before [allEpochs]int) {
	for _, name := range underIntent {
		if w.epochs[name] != before[name] {
			w.ends[name] = w.intent == intentStands && !w.rule.makesLong && !(name == ofAnyTag && w.rule.anyLasts)
		}
	}
}

func (w *tagWorld) write(step int, dies bool) {
	switch {
	case step == 1:
		w.intent = intentStands
		for _, name := range underIntent {
			w.ends[name] = w.epochs[name] != 0 && !w.rule.noCut && !(name == ofAnyTag && w.rule.anyLasts)
		}
		if !w.rule.noNotice {
			w.tier.now++
		}
	case step == 2:
		w.source = newOne
	case step == 3 && dies:
		w.intent = intentOver
		if w.rule.noEvidence {
			w.intent = noIntent
		}
	case step == 4 && dies:
		for _, name := range underIntent {
			if w.ends[name] {
				w.epochs[name], w.ends[name] = 0, false
			}
		}
	case step == 4:
		w.epochs[ofTag], w.epochs[ofAnyTag], w.intent = 0, 0, noIntent
		w.tier.now++
	}
}

func playTags(order []int, known, dies bool, rule tagRules) bool {
	w := tagWorld{epochWorld: epochWorld{source: oldOne}, rule: rule}
	loads := [2]anEpochLoad{{known: known}, {known: !known}}
	var reader anEpochReader
	var readEnds, wrong bool
	written := 0
	for _, who := range order {
		over := written == tagWriterSteps
		switch who {
		case aWriter:
			written++
			w.write(written, dies)
		case load1, load2:
			l := &loads[who-load1]
			if l.step == 2 || l.step == 4 { // which make epochs
				w.settle()
			}
			before := w.epochs
			l.next(&w.epochWorld, epochRules{}, over)
			w.made(before)
		case aReader:
			kept := w.tier
			if reader.next(&w.epochWorld, epochRules{}, over); reader.step == 3 {
				readEnds = w.ends[ofTag]
			} else if reader.step == epochReaderSteps && readEnds && !rule.tierKeeps {
				w.tier = kept
			}
		}
		wrong = wrong || written == tagWriterSteps && w.stale(epochRules{})
	}
	return wrong || loads[0].wrong || loads[1].wrong || reader.wrong
}

func checkTagIntents(t *testing.T, of [actors]int, rule tagRules) (wrong string) {
	t.Helper()
	for _, known := range []bool{true, false} {
		for _, dies := range []bool{true, false} {
			count := 0
			orders(of[:], func(order []int) {
				if count++; wrong == "" && playTags(order, known, dies, rule) {
					wrong = fmt.Sprint(order, known, dies)
				}
			})
			switch {
			case wrong != "":
				return wrong
			case of[load2] == 0:
				expect.Equal(t, "orders", count, 210_210)
			default: // one of the loads knows the tag in any case
				expect.Equal(t, "orders", count, 1_681_680)
				return ""
			}
		}
	}
	return ""
}

var oneLoadAndAReader = [actors]int{tagWriterSteps, epochLoadSteps, 0, epochReaderSteps, 0}

func TestNoOrderOfLoadsReadersAndAnIntentOnATagLeavesAStaleValue(t *testing.T) {
	t.Parallel()
	expect.Equal(t, "wrong", checkTagIntents(t, oneLoadAndAReader, tagRules{}), "")
	expect.Equal(t, "wrong", checkTagIntents(t, [actors]int{tagWriterSteps, epochLoadSteps, epochLoadSteps, 0, 0}, tagRules{}), "")
}

func TestEachRuleOfIntentsOnTagsIsNeeded(t *testing.T) {
	t.Parallel()
	for name, rule := range expect.Some(3, map[string]tagRules{
		"that epochs from before it end with an intent":  {noCut: true},
		"that those made under it do":                    {makesLong: true},
		"that the epoch of all tags together does":       {anyLasts: true},
		"that its end is remembered for a while":         {noEvidence: true},
		"that local tiers hear of it":                    {noNotice: true},
		"that local tiers keep nothing whose epoch ends": {tierKeeps: true},
	}) {

		if wrong := checkTagIntents(t, oneLoadAndAReader, rule); wrong == "" {
			t.Errorf("without the rule %s nothing is wrong", name)
		} else {
			t.Logf("without the rule %s: %s", name, wrong)
		}
	}
}
