package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// The promises of docs/guarantees.md.
const (
	oneLoad    = "one load"             // at a time for a key
	oneOfMany  = "one load of many"     // at a time for each key of thousands
	eachOfMany = "each of many"         // has its value or an error
	newOfMany  = "new, of many"         // each of thousands is as new as a single one
	staleFill  = "stale fill"           // Redis has an old value
	readWrites = "read your writes"     // a call got an old value otherwise
	many       = "many at once"         // a tag, a kind or everything was invalidated
	madeOf     = "made of others"       // a view ends after what it is made of
	kinds      = "kind"                 // an entry belongs to its kind
	survives   = "survives its writer"  // what an Update wrote, although the writer died
	committed  = "survives its process" // what a transaction with an intent wrote, although its process died
	itsOwn     = "its own"              // what a transaction reads, before it is committed
	turnedOn   = "turned on again"      // the cache is right then
	puts       = "put"                  // stores only what nothing has overtaken
	versions   = "versions"             // side by side
	nobodyPays = "nobody pays"          // for another
	reaches    = "reaches its callers"  // a value, without Redis too
	sentAgain  = "pending"              // its own Guard does not serve it
	tierDelay  = "local tier"           // of other instances
	absence    = "absence"              // ends with its tags
	ends       = "ends"                 // a call does, when its context does; Close does
	byLock     = "lock"                 // somebody without it counted
	says       = "says"                 // an error does, whether write was called
	bySwap     = "swap"                 // a swap was lost, or made twice
)

var promises = []string{
	oneLoad, oneOfMany, eachOfMany, newOfMany, staleFill, readWrites, many, madeOf, kinds, survives, committed, itsOwn, turnedOn, puts, versions, nobodyPays, reaches, sentAgain, tierDelay, absence, ends, says, byLock, bySwap,
}

// checker reads what processes saw, a round after the other.
type checker struct {
	slack    time.Duration // a call may end that much after its context
	delay    time.Duration // another's tier may be that far behind
	keeps    bool          // Redis loses nothing, and is never slow: loads are counted, and writers die
	swaps    bool          // and what was swapped
	breaks   []span        // when something was broken
	forgets  []span        // failovers, which may forget what was acknowledged
	writes   map[string][]event
	newest   map[string][]int64 // that of the writes up to here
	starved  map[string][]span  // by process
	repeats  []span             // then loads may have run twice
	off      map[string][]span  // by Guard: its cache was turned off for some keys
	found    map[string][]finding
	counts   map[string]int
	keys     int64 // that calls for thousands asked for
	excused  int
	observed map[string]bool // operations that succeeded
}

func newChecker() *checker {
	return &checker{
		slack: 6 * time.Second, delay: 6 * time.Second, writes: make(map[string][]event), starved: make(map[string][]span), off: make(map[string][]span), newest: make(map[string][]int64),
		found: make(map[string][]finding), counts: make(map[string]int), observed: make(map[string]bool),
	}
}

// finding is what a process saw, and the writes that it should have heeded.
type finding struct {
	seen  event
	after []event
}

func (c *checker) wrong(promise string, seen event, after ...event) {
	c.found[promise] = append(c.found[promise], finding{seen, after})
}

// round checks what processes that have ended saw.
func (c *checker) round(history []event) {
	for _, e := range history {
		c.counts[e.Kind]++
		switch e.Kind {
		case invalidated:
			c.writes[e.Scope] = append(c.writes[e.Scope], e)
		case pending:
			scope := e.Guard + " " + e.Scope
			c.writes[scope] = append(c.writes[scope], e)
		case written:
			if c.keeps { // its process may die, but then the intent expires
				e.To += int64(2*lease + 2*time.Second)
				c.writes[e.Scope] = append(c.writes[e.Scope], e)
			}
		case repeats:
			c.repeats = append(c.repeats, span{e.From - int64(lease), e.To + int64(lease)})
		case starved:
			c.starved[e.process()] = append(c.starved[e.process()], span{e.From - int64(lease), e.To + int64(lease)})
		case off:
			c.off[e.Guard] = append(c.off[e.Guard], span{e.From, e.To})
		case done:
			c.observed[e.How] = true
		case asked:
			c.keys += e.N
			if e.How == "left" {
				c.counts["left"]++
			}
		}
	}
	for scope, all := range c.writes {
		slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.To, b.To) })
		newest := make([]int64, len(all))
		for i, e := range all {
			newest[i] = max(e.N, newest[max(i-1, 0)])
		}
		c.newest[scope] = newest
	}
	for _, e := range history {
		switch e.Kind {
		case got, absent:
			c.value(e)
		case failed:
			c.failure(e)
		case misjudged:
			c.wrong(says, e)
		case astray:
			c.wrong(eachOfMany, e)
		case behind:
			c.wrong(readWrites, e)
		case late:
			if e.To > e.Deadline+int64(c.slack) && !meets(c.starved[e.process()], e.From, e.To) {
				c.wrong(ends, e)
			}
		}
	}
	if c.keeps {
		c.loads(history)
	}
	c.forget()
}

func meets(all []span, from, to int64) bool {
	return slices.ContainsFunc(all, func(s span) bool { return s.meets(from, to) })
}

// forget keeps only the newest write of each scope: the next processes begin after all of these.
func (c *checker) forget() {
	for scope, all := range c.writes {
		if strings.Contains(scope, " ") { // that Guard is gone
			delete(c.writes, scope)
			continue
		}
		newest := slices.MaxFunc(all, func(a, b event) int { return cmp.Compare(a.N, b.N) })
		c.writes[scope] = []event{newest}
	}
	clear(c.starved)
	clear(c.off)
	c.breaks, c.repeats = nil, nil
}

// value compares a value with what was invalidated before its call began.
func (c *checker) value(e event) {
	if e.Stored != e.Version {
		c.wrong(versions, e)
	}
	if e.By == "transaction" {
		c.wrong(itsOwn, e)
	}
	if strings.HasPrefix(e.Key, "bare:") != (e.By == "bare") {
		c.wrong(kinds, e)
	}
	for _, scope := range e.scopes() {
		own := e.Guard + " " + scope
		if e.isView() { // others may make it of a thing whose invalidation is pending
			own = scope
		}
		for _, scope := range []string{scope, own} {
			newest := c.newest[scope]
			before := sort.Search(len(newest), func(i int) bool { return c.writes[scope][i].To >= e.From })
			if before == 0 || newest[before-1] <= e.N {
				continue
			}
			for _, w := range c.writes[scope][:before] {
				if w.N > e.N && c.old(e, w) {
					return
				}
			}
		}
	}
}

// old says which promise is broken by a value that is older than a write that was invalidated before.
func (c *checker) old(e, w event) bool {
	tier := slices.Contains([]string{"local", "negative", "stale", "old"}, e.How) && e.Guard != w.Guard
	switch {
	case meets(c.forgets, e.From, e.From), tier && e.From < w.To+int64(c.delay):
		c.excused++
		return false
	case w.Kind == written && meets(c.starved[w.process()], w.From-int64(2*lease), w.From+int64(lease)):
		c.excused++ // it was paused for longer than its intent, perhaps
		return false
	case e.Many > 1:
		c.wrong(newOfMany, e, w)
	case w.Kind == pending:
		c.wrong(sentAgain, e, w)
	case e.Kind == absent:
		c.wrong(absence, e, w)
	case w.Kind == written && w.How == "intent":
		c.wrong(committed, e, w)
	case w.Kind == written:
		c.wrong(survives, e, w)
	case e.isView():
		c.wrong(madeOf, e, w)
	case tier:
		c.wrong(tierDelay, e, w)
	case meets(c.off[w.Guard], w.From, w.To):
		c.wrong(turnedOn, e, w)
	case !strings.HasPrefix(w.Scope, "key:"):
		c.wrong(many, e, w)
	case e.By == "put":
		c.wrong(puts, e, w)
	case e.Version != w.Version && strings.HasPrefix(e.Key, "thing:"): // other kinds have no version
		c.wrong(versions, e, w)
	case e.How == "hit":
		c.wrong(staleFill, e, w)
	default:
		c.wrong(readWrites, e, w)
	}
	return true
}

func (c *checker) failure(e event) {
	switch {
	case c.stoodStillForALoad(e):
	case meets(c.breaks, e.From, e.To):
		c.wrong(reaches, e)
	default:
		c.wrong(nobodyPays, e)
	}
}

// stoodStillForALoad reports whether the call's process did nothing for as long as a load may take: its LoadTimeout was over when it went on.
func (c *checker) stoodStillForALoad(e event) bool {
	return slices.ContainsFunc(c.starved[e.process()], func(s span) bool {
		return s.meets(e.From, e.To) && s.to-s.from-int64(2*lease) >= int64(loadTimeout)
	})
}

// loads looks for two loads of a key at once. An invalidation may come between them.
func (c *checker) loads(history []event) {
	byKey := make(map[string][]event)
	for _, e := range history {
		if e.Kind == loaded {
			byKey[e.Key] = append(byKey[e.Key], e)
		}
	}
	for _, all := range byKey {
		slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.From, b.From) })
		for i, e := range all[min(1, len(all)):] {
			if e.From < all[i].To && !c.mayRepeat(all[i].From, e) {
				promise := oneLoad
				if max(e.Many, all[i].Many) > 1 {
					promise = oneOfMany
				}
				c.wrong(promise, e, all[i])
			}
		}
	}
}

// mayRepeat reports whether a second load may begin since the first one has.
func (c *checker) mayRepeat(first int64, e event) bool {
	if meets(c.breaks, first-int64(2*lease), e.From) || meets(c.repeats, first, e.From) {
		return true
	}
	for _, spans := range c.starved {
		if meets(spans, first, e.From) {
			return true
		}
	}
	for _, scope := range e.scopes() {
		for _, w := range c.writes[scope] {
			if (span{w.From, w.To}).meets(first-int64(time.Second), e.From) {
				return true
			}
		}
	}
	return false
}

// miscounted says what is wrong with a count: every increment that was reported is there, and none that nobody tried.
func miscounted(what string, tried, added, count int64) error {
	switch {
	case count < added:
		return fmt.Errorf("%s: the count is %d, and %d have counted: some were lost", what, count, added)
	case count > tried:
		return fmt.Errorf("%s: the count is %d, and %d tried to count: some were made twice", what, count, tried)
	}
	return nil
}

// summary is what happened, in a line.
func (c *checker) summary() string {
	return fmt.Sprintf("%d values, %d absences, %d invalidations, %d of them pending, %d updates, %d loads; %d calls for %d keys, of which %d left; %d old ones excused",
		c.counts[got], c.counts[absent], c.counts[invalidated], c.counts[pending], c.counts[written], c.counts[loads], c.counts[asked], c.keys, c.counts["left"], c.excused)
}
