package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/keys"
)

// errElsewhere is why nothing is written: it would look like success.
var errElsewhere = errors.New("nothing was done, as no instance would notice")

const allTheSame = "without their pages (CACHEGUARD_PAGES, --page) it is done all the same"

// marked is for how long what proves a Redis stays if it cannot be removed: longer than a page is waited for.
const marked = 6 * pageTimeout

// fleet says which instances use this Redis, which another one, and of which that is not known, and why.
type fleet struct {
	here    int         // how many use this Redis
	others  []elsewhere // those that use another one
	unknown error       // nil: it is known of all that were asked
}

// elsewhere is an instance that uses another Redis: another server, another database of this one, or that of which this one is a copy.
type elsewhere struct{ instance, redis string }

// witness is a Guard or a Locker on a page, which says whether it sees a name in its Redis.
type witness struct {
	elsewhere

	page  string
	query url.Values
	named string // which value of the query is the name
}

// fleet asks the Guards of the Prefix on the pages. A value that nobody can read has to do, as it is there for a moment only.
func (e *env) fleet(pages []string) fleet {
	var all []witness
	for i, p := range e.look(pages) {
		for n, g := range p.Guards {
			if g.Prefix == e.all.Prefix && g.Redis != "" { // what says nothing of its Redis proves nothing of it
				query := url.Values{"view": {"key"}, "guard": {strconv.Itoa(n)}}
				all = append(all, witness{elsewhere{g.Instance, g.Redis}, pages[i], query, "key"})
			}
		}
	}
	return e.ask(all, func(name string) (remove func() error, err error) {
		key := keys.Tagged(e.all.Prefix, name)
		return func() error {
			n, err := e.rdb.Del(context.WithoutCancel(e.ctx), key).Result()
			if err == nil && n == 0 {
				err = errors.New("Redis lost what was written to prove it") //nolint:staticcheck // it is a name
			}
			return err
		}, e.rdb.Set(e.ctx, key, "cacheguardctl", marked).Err()
	})
}

// ask writes something under a random name, and asks who sees that: the copy of a Redis has whatever else the Redis has. That nobody sees it proves
// something only if it was there all the time.
func (e *env) ask(of []witness, write func(name string) (remove func() error, err error)) (all fleet) {
	if len(of) == 0 {
		return all
	}
	name := rand.Text()
	remove, err := write(name)
	if err != nil {
		return fleet{unknown: err}
	}
	seen, errs := make([]bool, len(of)), make([]error, len(of))
	var asking sync.WaitGroup
	for i := range of {
		asking.Go(func() { seen[i], errs[i] = of[i].sees(e.ctx, name) }) // owner: ask; stop: pageTimeout; joined below
	}
	asking.Wait()
	gone := remove()
	for i, w := range of {
		switch err := cmp.Or(errs[i], gone); {
		case seen[i]:
			all.here++
		case err != nil:
			all.unknown = errors.Join(all.unknown, fmt.Errorf("%s: %w", w.instance, err))
		default:
			all.others = append(all.others, w.elsewhere)
		}
	}
	slices.SortFunc(all.others, func(a, b elsewhere) int {
		return cmp.Or(cmp.Compare(a.instance, b.instance), cmp.Compare(a.redis, b.redis))
	})
	all.others = slices.Compact(all.others) // a process may have several Guards
	return all
}

// sees asks the page to look the name up.
func (w *witness) sees(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	var said struct {
		State, Problem string // of a key
		Holders        int    // of a lock
	}
	w.query.Set(w.named, name)
	err := askPage(ctx, http.MethodGet, w.page, w.query.Encode(), &said)
	sees := err == nil && said.Problem == "" && (said.Holders > 0 || w.named == "key" && said.State != string(cacheguard.EntryMissing))
	switch {
	case err == nil && said.Problem != "":
		err = errors.New(said.Problem)
	case err == nil && !sees && strings.HasPrefix(w.redis, "a *"):
		err = fmt.Errorf("its client, %s, may use several servers", w.redis)
	}
	return sees, err
}

// findings name the instances that use another Redis, or may, for check.
func (f fleet) findings(e *env) (all []finding) {
	for _, o := range f.others {
		all = append(all, finding{Check: "instance", Node: o.instance, Result: wrong, Detail: fmt.Sprintf(
			"it uses another Redis, %s, than REDIS_URL names, %s, which is what is checked here", o.redis, e.where(),
		)})
	}
	if f.unknown != nil {
		all = append(all, finding{Check: "instance", Result: warning, Detail: f.unproved()})
	}
	return all
}

// unproved says that an instance may use another Redis, or one of which this is a copy.
func (f fleet) unproved() string {
	return strings.ReplaceAll(f.unknown.Error(), "\n", "; ") + ": so cacheguardctl cannot tell whether the instances use this Redis, or one that it was copied from"
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

// notes are what to say of a command that writes, and is not refused.
func (f fleet) notes(e *env) (all []string) {
	if f.unknown != nil {
		all = append(all, f.unproved())
	}
	if note := f.note(e); note != "" {
		all = append(all, note)
	}
	return all
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
