package memory

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// kinds are calls that belong together.
var kinds = map[string]struct {
	draw func(d *draw) call
	keys []string
}{
	"values":  {(*draw).values, slices.Concat(sharedKeys, []string{"k:intent", "k:until", "k:lease:error"})},
	"updates": {(*draw).updates, slices.Concat(sharedKeys, lockNames, []string{"k:intent", "k:until"})},
	"locks":   {(*draw).rw, lockNames},
	"permits": {(*draw).permits, permitNames},
	"mutex":   {(*draw).mutex, mutexNames},
	"epochs":  {(*draw).epochs, []string{"e:a", "e:b", "e:*", "e:a:until", "e:b:until", "e:*:until"}},
	"plain":   {(*draw).commands, plainKeys},
	"rest":    {(*draw).rest, []string{"c", "c:recent", "s0", "s1", "s0:lane", "place", "name"}},
}

// walk draws so many calls of a kind, and runs each on both, until they differ.
func (b *both) walk(t testing.TB, kind string, seed uint64, steps int, ran map[string]int) (difference string) {
	t.Helper()
	b.begin(t)
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 7)), b: b}
	var told []string
	for range steps {
		b.pass(d.Rand)
		c := kinds[kind].draw(d)
		if d.IntN(40) == 0 {
			c = d.accident(kinds[kind].keys)
		}
		told = append(told, fmt.Sprintf("%d %v", b.micros/1000, c))
		reply, difference := b.run(t, c)
		if difference != "" {
			return fmt.Sprintf("%s, seed %d:\n%s\n%s", kind, seed, strings.Join(told[max(0, len(told)-12):], "\n"), difference)
		}
		d.learn(c, reply)
		ran[c.name]++
	}
	return ""
}

// seeds are of 8 walks of each kind, 13,000 calls in all, or of 25, which make engines repeats; MODEL_SEED: of that one.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	if text := os.Getenv("MODEL_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{seed}
	}
	all := make([]uint64, expect.Samples(8, 25))
	for i := range all {
		all[i] = rand.Uint64()
	}
	return all
}

func TestEachCallDoesWhatItDoesInRedis(t *testing.T) {
	t.Parallel()
	b := newBoth(t, redistest.Start(t).Client(t))
	ran := make(map[string]int)
	for kind := range kinds {
		for _, seed := range seeds(t) {
			if difference := b.walk(t, kind, seed, 200, ran); difference != "" {
				t.Error(difference)
				break
			}
		}
	}
	b.end(t)
	for name := range b.texts {
		if ran[name] < 10 && !t.Failed() && os.Getenv("MODEL_SEED") == "" {
			t.Errorf("%s ran %d times", name, ran[name])
		}
	}
}
