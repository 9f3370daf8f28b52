// Command sim runs a simulated fleet whose doings, network and deaths a seed draws, and prints what happened, or looks for a seed that breaks a promise:
//
//	go run ./proof/cmd/sim -seed 42
//	go run ./proof/cmd/sim -seeds 1000
//	go run ./proof/cmd/sim -for 10m
//
// Runs of a seed differ in what the Go runtime decides. Command exact runs seeds so that they do not, and takes ten times as long.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/proof/sim"
)

type options struct {
	seed, seeds uint64
	repeat      int
	long        time.Duration
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "run this seed, and print what happens")
	flag.IntVar(&o.repeat, "repeat", 1, "run the seed so often, until it breaks a promise: its runs differ in what the Go runtime decides")
	flag.Uint64Var(&o.seeds, "seeds", 0, "run so many seeds, from 0 on")
	flag.DurationVar(&o.long, "for", 0, "run seeds for so long, from a random one on")
	testing.Init() // synctest wants a test
	flag.Parse()
	logging.Disable() // of go-redis, which reports every connection that is lost
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{
		Name: "sim", F: func(t *testing.T) { work(t, os.Stdout, o) },
	}}, nil, nil)
}

func work(t *testing.T, out io.Writer, o options) {
	debug.SetGCPercent(400) // a fleet is small, and soon garbage: a quarter less processor time
	switch {
	case o.seeds > 0:
		search(t, out, 0, func(n uint64) bool { return n < o.seeds })
	case o.long > 0:
		end := time.Now().Add(o.long)
		search(t, out, rand.Uint64N(1<<40), func(uint64) bool { return time.Now().Before(end) })
	default:
		var r sim.Result
		for n := 0; n < o.repeat && len(r.Wrong) == 0; n++ {
			r = sim.Run(t, o.seed)
		}
		_, _ = fmt.Fprint(out, r.Journal) // to the terminal
		for _, wrong := range r.Wrong {
			t.Error(wrong)
		}
	}
}

// patience is for how long a seed may take by the real clock; most take some tens of milliseconds. synctest lets no time pass while somebody
// waits for a mutex, so a run stands still when its holder waits for time.
const patience = 3 * time.Minute

// search runs seeds, one on each processor at a time, until one breaks a promise.
func search(t *testing.T, out io.Writer, first uint64, more func(n uint64) bool) {
	var next, done atomic.Uint64
	var broken atomic.Bool
	t.Run("seeds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("some", func(t *testing.T) {
				t.Parallel()
				for n := next.Add(1) - 1; more(n) && !broken.Load(); n = next.Add(1) - 1 {
					seed := first + n
					if r := patiently(t, out, seed); len(r.Wrong) > 0 {
						broken.Store(true)
						_, _ = fmt.Fprint(out, r.Journal) // to the terminal
						t.Errorf("seed %d: %q; again: go run ./proof/cmd/sim -seed %d -repeat 20, or go run ./proof/cmd/exact -seed %d", seed, r.Wrong, seed, seed)
					}
					done.Add(1)
				}
			})
		}
	})
	_, _ = fmt.Fprintf(out, "%d seeds from %d on\n", done.Load(), first) // to the terminal
}

func patiently(t *testing.T, out io.Writer, seed uint64) sim.Result {
	t.Helper()
	stands := time.AfterFunc(patience, func() { // owner: the call, which stops it
		_, _ = fmt.Fprintf(out, "seed %d stands still, by what somebody does while holding a mutex\n", seed) // to the terminal
		_ = pprof.Lookup("goroutine").WriteTo(out, 2)                                                        // who holds it
		os.Exit(2)                                                                                           // nobody can end a bubble that stands still
	})
	defer stands.Stop()
	return sim.Run(t, seed)
}
