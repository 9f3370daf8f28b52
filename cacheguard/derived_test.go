package cacheguard

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// tree is a Cache on each instance whose things are made of two others of the same Cache, down to the leaves, which are rows. The root is 1.
type tree struct {
	*fleet

	caches []*Cache[int, string]
	mu     sync.Mutex
	rows   map[int]int // versions
}

const leaves = 4 // the first

func newTree(t *testing.T) *tree {
	t.Helper()
	f := newFleet(t, standalone(t), 2, Config{}).listening()
	x := &tree{fleet: f, rows: make(map[int]int)}
	for i, g := range f.guards {
		c, err := NewCache(g, CacheConfig[int, string]{Name: "node", Load: func(ctx context.Context, n int) (string, error) {
			if n >= leaves {
				return strconv.Itoa(x.row(n)), nil
			}
			left, err := x.caches[i].Get(ctx, 2*n)
			right, other := x.caches[i].Get(ctx, 2*n+1)
			return left + " " + right, errors.Join(err, other)
		}})
		expect.Equal(t, "NewCache", err, nil)
		x.caches = append(x.caches, c)
	}
	return x
}

func (x *tree) row(n int) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rows[n]
}

func (x *tree) write(n int) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rows[n]++
	return strconv.Itoa(x.rows[n])
}

// above are the things that are made of the leaf, from there to the root.
func above(n int) (all []int) {
	for n /= 2; n > 0; n /= 2 {
		all = append(all, n)
	}
	return all
}

// reads has callers ask for what is made of others, on each instance, until the context ends.
func (x *tree) reads(ctx context.Context, callers *sync.WaitGroup) {
	for _, c := range x.caches {
		for n := 1; n < leaves; n++ {
			callers.Go(func() { // stop: the context, which the test ends; joined by it
				for ctx.Err() == nil {
					_, _ = c.Get(ctx, n) // what it is while somebody writes is not promised
				}
			})
		}
	}
}

// old are the things that an instance has, and that are not made of what the leaves are.
func (x *tree) old() (found []string) {
	x.t.Helper()
	texts := make(map[int]string)
	for n := 2*leaves - 1; n > 0; n-- {
		texts[n] = strconv.Itoa(x.row(n))
		if n < leaves {
			texts[n] = texts[2*n] + " " + texts[2*n+1]
		}
		for _, c := range x.caches {
			v, err := c.Get(x.t.Context(), n)
			expect.Equal(x.t, "error", err, nil)
			if v != texts[n] {
				found = append(found, strconv.Itoa(n)+" is "+v+", not "+texts[n])
			}
		}
	}
	return found
}

// Each call ends one level, and returns when Redis has done so: what is made of a level is made of nothing older from then on.
func TestATreeOfOneCacheHasNothingOldWhenItsLevelsWereInvalidatedFromTheLeafUp(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(x *tree, leaf int) error{
		"Invalidate": func(x *tree, leaf int) error {
			x.write(leaf)
			return x.caches[0].Invalidate(context.Background(), leaf)
		},
		"Put": func(x *tree, leaf int) error {
			return x.caches[0].Put(context.Background(), leaf, func(context.Context) (string, error) { return x.write(leaf), nil })
		},
		"Update": func(x *tree, leaf int) error {
			return x.caches[0].Update(context.Background(), leaf, func(context.Context) error {
				x.write(leaf)
				return nil
			})
		},
		"Intend": func(x *tree, leaf int) error {
			in, err := x.guards[0].Intend(context.Background(), x.caches[0].Changes(leaf))
			x.write(leaf)
			return errors.Join(err, in.Done(context.Background()))
		},
	}, func(t *testing.T, _ string, write func(x *tree, leaf int) error) {
		x := newTree(t)
		for round := range expect.Samples(10, 100) {
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			x.reads(ctx, &callers)
			leaf := leaves + round%leaves
			expect.Equal(t, "the write", write(x, leaf), nil)
			for _, n := range above(leaf) {
				expect.Equal(t, "Invalidate", x.caches[1].Invalidate(t.Context(), n), nil)
			}
			expect.Equal(t, "old", strings.Join(x.old(), ", "), "")
			stop()
			callers.Wait()
		}
	})
}

// The other way round, what a caller asks for in between is made of an old value, and stored.
func TestATreeOfOneCacheThatIsInvalidatedFromTheRootDownHasAnOldValue(t *testing.T) {
	t.Parallel()
	x := newTree(t)
	expect.Equal(t, "old at first", len(x.old()), 0)
	x.stored()
	x.write(leaves)
	for _, n := range slices.Backward(append([]int{leaves}, above(leaves)...)) {
		expect.Equal(t, "Invalidate", x.caches[0].Invalidate(t.Context(), n), nil)
		_, err := x.caches[1].Get(t.Context(), 1)
		expect.Equal(t, "error", err, nil)
		x.stored()
	}
	expect.Equal(t, "it is found", len(x.old()) > 0, true)
}

// What a tier has may be old for MaxLag. What a loader makes of it would be old for a TTL.
func TestALoaderGetsNothingFromATier(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{Local: LocalConfig{MaxEntries: 100, TTL: time.Hour}}).listening()
	g := f.guards[0]
	mustGet(t, g, "k", returns("v"))
	how := func(ctx context.Context) (how Outcome) {
		_, how, err := get(ctx, g, "k", returns("v"))
		expect.Equal(t, "error", err, nil)
		return how
	}
	redistest.Await(t, "the tier has it", func() bool { return how(t.Context()) == Local })
	mustGet(t, g, "of k", func(ctx context.Context) (string, error) {
		expect.Equal(t, "a Get's outcome", how(ctx), Hit)
		_, err := GetMany(ctx, g, []string{"k"}, func(context.Context, []string) (map[string]string, error) { return nil, errors.New("loaded") })
		expect.Equal(t, "GetMany's error", err, nil)
		return "made", nil
	})
	_, err := GetMany(t.Context(), g, []string{"l"}, func(ctx context.Context, _ []string) (map[string]string, error) {
		expect.Equal(t, "a Get's outcome in LoadMany", how(ctx), Hit)
		return map[string]string{"l": "made"}, nil
	})
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "outside", how(t.Context()), Local)
}
