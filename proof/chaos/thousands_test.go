package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cacheguard/go/cacheguard"
)

const shares = 10 // of the things that only such calls ask for; those of one are invalidated together

// crowd is a kind of which thousands are asked for at once: the few that others read and change, and many beside them.
type crowd struct {
	*cacheguard.Cache[int, value]
	few, beside, most int
}

// crowdOf is for calls for w.most, or a fifth of that.
func (w *worker) crowdOf(c *cacheguard.Cache[int, value], few int) crowd {
	return crowd{c, few, w.most + w.most/5, w.most}
}

// name names a thing in the log. The things beside the few have the name of their share.
func (c crowd) name(id int) string {
	if id < c.few {
		return c.Key(id)
	}
	return nameOfShare(c.Name(), id%shares)
}

func nameOfShare(kind string, share int) string { return fmt.Sprint(kind, ":share", share) }

// draw is thousands of things, among which the few have any place. Two draws overlap as a rule.
func (c crowd) draw() []int {
	first, n := rand.N(c.beside), c.most/5+rand.N(c.most*4/5+1)-c.few
	ids := make([]int, 0, n+c.few)
	for i := range n {
		ids = append(ids, c.few+(first+i)%c.beside)
	}
	for id := range c.few {
		ids = slices.Insert(ids, rand.N(len(ids)+1), id)
	}
	return ids
}

func inSomeOrder(ids []int) []int {
	ids = slices.Clone(ids)
	switch rand.N(3) {
	case 0:
		slices.Reverse(ids)
	case 1:
		rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	return ids
}

// getThousands has some callers ask for the same thousands of things at once, or for some of them. Some leave in the middle.
func (w *worker) getThousands(ctx context.Context, o *opened) error {
	return w.together(o, w.crowdOf(o.crowd, things), func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		if rand.N(3) > 0 {
			return ctx, cancel
		}
		leaves := time.AfterFunc(rand.N(1+rand.N(100*time.Millisecond)), cancel)
		return ctx, func() {
			leaves.Stop()
			cancel()
		}
	})
}

// getThousandsQuietly does so with things whose loads are counted. Nobody leaves: other processes may load what all have left, while its loader has
// not noticed that.
func (w *worker) getThousandsQuietly(ctx context.Context, o *opened) error {
	from := now()
	err := w.together(o, w.crowdOf(o.quietCrowd, quiet), func() (context.Context, context.CancelFunc) { return ctx, func() {} })
	if ctx.Err() != nil {
		w.note(event{Kind: repeats, Guard: w.name, From: from})
	}
	return err
}

func (w *worker) together(o *opened, c crowd, begin func() (context.Context, context.CancelFunc)) error {
	if !w.crowded.TryLock() { // what a process takes stays small
		return nil
	}
	defer w.crowded.Unlock()
	var all errgroup.Group
	ids := c.draw()
	for i := range 1 + rand.N(3) {
		if i > 0 && rand.N(3) == 0 {
			ids = c.draw()
		}
		some := inSomeOrder(ids)
		all.Go(func() error { // owner: the call; ends with its GetMany; joined below
			ctx, cancel := begin()
			defer cancel()
			return w.askForAll(ctx, o, c, some)
		})
	}
	return all.Wait()
}

// askForAll asks for all with one call, and notes what it has of each.
func (w *worker) askForAll(ctx context.Context, o *opened, c crowd, ids []int) error {
	ctx, how := withOutcomes(ctx)
	from := now()
	found, err := c.GetMany(ctx, ids)
	w.notesEach(o, c.name, found, func(id int) string { return how.of(c.Key(id)) }, from)
	refused := make(map[string]bool)
	refusedBy(err, refused)
	w.answersEach(o, ids, found, func(id int) bool { return refused[c.Key(id)] }, from)
	e := event{Kind: asked, Guard: o.name, N: int64(len(ids)), Many: len(found), From: from}
	if err != nil && ctx.Err() != nil {
		e.How = "left"
	}
	w.note(e)
	if err == nil || e.How == "left" {
		return nil
	}
	return w.failed(ctx, o, c.Name(), from, err)
}

// refusedBy adds the keys that an error is about.
func refusedBy(err error, keys map[string]bool) {
	if joined, are := err.(interface{ Unwrap() []error }); are {
		for _, err := range joined.Unwrap() {
			refusedBy(err, keys)
		}
	} else if of := new(cacheguard.KeyError); errors.As(err, &of) {
		keys[of.Key] = true
	}
}

// notesEach notes the oldest of those that the same invalidations concern, and that were found in the same way: the others need no look.
func (w *worker) notesEach(o *opened, name func(id int) string, found map[int]value, how func(id int) string, from int64) {
	oldest := make(map[event]int64)
	for id, v := range found {
		e := event{Kind: got, Guard: o.name, Key: name(id), Tags: v.Tags, By: v.By, How: how(id), From: from, Version: o.version, Stored: o.version, Many: len(found)}
		if v.Version != 0 {
			e.Stored = v.Version
		}
		if n, seen := oldest[e]; !seen || v.N < n {
			oldest[e] = v.N
		}
	}
	for e, n := range oldest {
		e.N = n
		w.note(e)
	}
}

// answersEach notes the first key of a call that has neither a value of its own nor an error.
func (w *worker) answersEach(o *opened, ids []int, found map[int]value, refused func(id int) bool, from int64) {
	for i, id := range ids {
		if v, has := found[id]; has && v.ID != id || !has && !refused(id) {
			w.note(event{Kind: astray, Guard: o.name, How: fmt.Sprintf("number %d of %d, thing %d: found %t: %+v", i, len(ids), id, has, v), From: from})
			return
		}
	}
}

// loadThousands reads things with one query.
func (w *worker) loadThousands(ctx context.Context, o *opened, ids []int) (map[int]value, error) {
	if rand.N(4) == 0 { // so that some are stale
		cacheguard.SetTTL(ctx, rand.N(100*time.Millisecond))
	}
	v, err := w.load(ctx)
	v.Version = o.version
	return each(v, ids), err
}

func each(v value, ids []int) map[int]value {
	all := make(map[int]value, len(ids))
	for _, v.ID = range ids {
		all[v.ID] = v
	}
	return all
}

// invalidateShare does so with hundreds of things.
func (w *worker) invalidateShare(ctx context.Context, o *opened) error {
	share, c := rand.N(shares), w.crowdOf(o.crowd, things)
	var ids []int
	for id := c.few; id < c.few+c.beside; id++ {
		if id%shares == share {
			ids = append(ids, id)
		}
	}
	return w.change(ctx, o, []string{"key:" + nameOfShare(c.Name(), share)}, func() error { return c.Invalidate(ctx, ids...) })
}
