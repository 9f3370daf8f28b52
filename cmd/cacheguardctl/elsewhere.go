package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cacheguard/go/internal/redis/goredis"
)

// errElsewhere is why nothing is written: it would look like success.
var errElsewhere = errors.New("nothing was done, as no instance would notice")

const allTheSame = "without their pages (CACHEGUARD_PAGES, --page) it is done all the same"

// comparisons are how often an instance's Redis is found to be another one before that is believed: between two questions, everything may be
// invalidated.
const comparisons = 3

// fleet says which instances of the Prefix use this Redis, and which another one. An instance for which neither is proved counts as neither.
type fleet struct {
	here   int         // how many use this Redis
	others []elsewhere // those that use another one
}

// elsewhere is an instance that uses another Redis: another server, or another database of this one.
type elsewhere struct{ instance, redis string }

// fleet asks pages, and compares texts that are in no two Redises: the epochs of everything, one of which each load has had. A page of an
// earlier version does not have them, and is left out.
func (e *env) fleet(pages []string) (all fleet) {
	seen := lookAtAll(e.ctx, pages)
	var mu sync.Mutex
	var comparing sync.WaitGroup
	for i := range seen {
		for n, g := range seen[i].Guards {
			if g.Prefix != e.all.Prefix || g.Redis == "" {
				continue
			}
			comparing.Go(func() { // owner: fleet; stop: pageTimeout; joined below
				here, proved := e.isOf(pages[i], n)
				mu.Lock()
				defer mu.Unlock()
				if here {
					all.here++
				} else if proved {
					all.others = append(all.others, elsewhere{g.Instance, g.Redis})
				}
			})
		}
	}
	comparing.Wait()
	slices.SortFunc(all.others, func(a, b elsewhere) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.redis, b.redis))
	})
	all.others = slices.Compact(all.others) // a process may have several Guards
	return all
}

// isOf reports whether a page's Guard of that number uses this Redis. It is not proved where neither has anything, or one does not answer.
func (e *env) isOf(page string, number int) (here, proved bool) {
	ctx, cancel := context.WithTimeout(e.ctx, pageTimeout)
	defer cancel()
	for range comparisons {
		var said struct{ Epochs map[string]string }
		query := url.Values{"view": {"epochs"}, "guard": {strconv.Itoa(number)}}
		if askPage(ctx, http.MethodGet, page, query.Encode(), &said) != nil {
			return false, false
		}
		proved = false
		for key, theirs := range said.Epochs {
			text, err := e.rdb.GetRange(ctx, key, 0, -1).Result()
			ours := fmt.Sprintf("%x", text)
			if err != nil || ours != "" && ours == theirs {
				return err == nil, err == nil
			}
			proved = proved || ours != theirs
		}
		if !proved {
			return false, false
		}
	}
	return false, true
}

// findings name the instances that use another Redis, for check.
func (f fleet) findings(e *env) (all []finding) {
	for _, o := range f.others {
		all = append(all, finding{Check: "instance", Node: o.instance, Result: wrong, Detail: fmt.Sprintf(
			"it uses another Redis, %s, than REDIS_URL names, %s, which is what is checked here", o.redis, e.where(),
		)})
	}
	return all
}

// note says which instances use another Redis; empty: none is known to.
func (f fleet) note(e *env) string {
	var all []string
	for _, o := range f.others {
		all = append(all, o.instance+" uses "+o.redis)
	}
	if all == nil {
		return ""
	}
	return fmt.Sprintf("REDIS_URL names %s, and %s", e.where(), strings.Join(all, ", "))
}

// refusal is why a command that writes must not be run; nil: it may, as some instance could notice.
func (f fleet) refusal(e *env) error {
	if len(f.others) == 0 || f.here > 0 {
		return nil
	}
	return fmt.Errorf("%w: %s; %s", errElsewhere, f.note(e), allTheSame)
}

// where names the Redis of REDIS_URL.
func (e *env) where() string { return goredis.Where(e.rdb) }
