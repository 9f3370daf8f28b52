package admin

import (
	"github.com/cacheguard/go/internal/watch/observe"
)

const (
	// fewPages is of how many requests of the last minutes a share says nothing.
	fewPages = 20
	// fewFailures is how many may fail, whatever the share: somebody has left.
	fewFailures = 2
)

// pagesOf is what a Cache of pages shows, and what is wrong with it in the last minutes.
func pagesOf(p observe.Pages) pagesState {
	all, lately := p.Read()
	one := pagesState{Name: p.Name, Space: p.Space, Answers: named(p.Words, all.Results), NotStored: named(p.Reasons, all.Reasons)}
	ever, now := asks(one.Answers, one.NotStored), asks(named(p.Words, lately.Results), named(p.Reasons, lately.Reasons))
	one.Ratio, one.AllRatio = ratio(float64(now.hits), float64(now.cacheable)), ratio(float64(ever.hits), float64(ever.cacheable))
	one.Failing, one.Faulty = now.many(now.failed, p.Failed), now.many(now.faulty, p.Faulty)
	if p.Unstored() != nil {
		one.Uncached = now.uncached(ever.hits > now.hits)
	}
	return one
}

func named(words []string, counts [observe.Words]uint64) map[string]uint64 {
	all := make(map[string]uint64, len(words))
	for i, word := range words {
		all[word] = counts[i]
	}
	return all
}

// pagesAsked is how requests were answered.
type pagesAsked struct {
	all       uint64
	cacheable uint64 // a cache may answer them
	hits      uint64 // stale pages, too
	failed    uint64
	faulty    uint64
	mistaken  uint64 // of notStored, what no handler asks for
	notStored uint64 // of what is cacheable, what was passed on because of its response
	why       string // most of that
	ofWhy     uint64
}

func asks(answers, reasons map[string]uint64) (p pagesAsked) {
	for _, n := range answers {
		p.all += n
	}
	for why, n := range reasons {
		p.notStored += n
		if why != "private" && why != "no-store" && why != "authorization" {
			p.mistaken += n
		}
		if n > p.ofWhy || n == p.ofWhy && why < p.why {
			p.why, p.ofWhy = why, n
		}
	}
	p.hits, p.failed, p.faulty = answers["hit"]+answers["stale"], answers["failed"], answers["faulty"]
	p.cacheable = p.all - answers["passed"] + p.notStored
	return p
}

// many says how many requests get no page, or a stored error, if these are more than a hundredth, as the alert has it; nil: they are not, or not lately.
func (p *pagesAsked) many(n uint64, last func() *string) *pagesShare {
	why := last()
	if n <= fewFailures || 100*n <= p.all || why == nil {
		return nil
	}
	return &pagesShare{Requests: p.all, Of: n, Why: *why}
}

// uncached says how many responses could not be stored, and mostly why, if these are nearly all, or most of them while a Cache that had hits has
// none, or most of them although no handler asks for it; nil: they are not.
func (p *pagesAsked) uncached(hadHits bool) *pagesShare {
	nearlyAll, most := 10*p.notStored >= 9*p.cacheable, 2*p.notStored >= p.cacheable
	if p.cacheable < fewPages || !nearlyAll && !(most && hadHits && p.hits == 0) && 2*p.mistaken < p.cacheable {
		return nil
	}
	return &pagesShare{Requests: p.cacheable, Of: p.notStored, Why: p.why}
}
