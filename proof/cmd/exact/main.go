// Command exact runs seeds of the simulated fleet so that nothing but the seed decides what happens (package exact), and prints what a seed
// did, or looks for one that breaks a promise. That one does so again whenever and wherever it runs, until the code changes:
//
//	go run ./proof/cmd/exact -seed 42
//	go run ./proof/cmd/exact -seeds 100
//	go run ./proof/cmd/exact -seed 1000 -seeds 100
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/cacheguard/go/proof/sim/exact"
)

func main() {
	seed := flag.Uint64("seed", 0, "run this seed, and print what happens")
	seeds := flag.Uint64("seeds", 0, "run so many seeds, from -seed on, and print the first that breaks a promise")
	flag.Parse()
	if err := work(context.Background(), *seed, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "exact:", err)
		os.Exit(1)
	}
}

func work(ctx context.Context, first, seeds uint64) error {
	fleet, err := exact.Compile(ctx)
	if err != nil {
		return err
	}
	defer fleet.Close(ctx)
	if seeds == 0 {
		printed, wrong, err := fleet.Run(ctx, first)
		fmt.Print(printed)
		if wrong {
			err = fmt.Errorf("seed %d breaks a promise", first)
		}
		return err
	}
	all, running := errgroup.WithContext(ctx)
	all.SetLimit(runtime.GOMAXPROCS(0))
	for seed := first; seed < first+seeds && running.Err() == nil; seed++ {
		all.Go(func() error { // owner: work; it ends with its seed; joined below
			printed, wrong, err := fleet.Run(ctx, seed)
			if wrong {
				err = fmt.Errorf("seed %d breaks a promise:\n%s", seed, printed)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d seeds from %d on\n", seeds, first)
	return nil
}
