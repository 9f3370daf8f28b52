package bench

import (
	"context"
	"sync"
	"time"
)

// tooLong is when a call is given up, and the benchmark with it.
const tooLong = 20 * time.Second

// together runs each for 0 to n-1 at the same moment, with contexts of their own, as requests have. It returns when all
// have ended, with one of their errors.
func together(ctx context.Context, n int, each func(ctx context.Context, i int) error) error {
	var ready, running sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	ready.Add(n)
	for i := range n {
		running.Go(func() { // owner: together; stop: tooLong; joined below
			ctx, cancel := context.WithTimeout(ctx, tooLong)
			defer cancel()
			ready.Done()
			<-start
			errs[i] = each(ctx, i)
		})
	}
	ready.Wait()
	close(start)
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
