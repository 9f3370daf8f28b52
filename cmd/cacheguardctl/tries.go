package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
)

// silent is the name of the check which a node that does not answer has failed.
const silent = "redis"

// notChecked begins the finding of a check that has not failed, and could not be made.
const notChecked = "not checked"

// slowest is the median round trip to the slowest of some nodes.
type slowest struct {
	mu   sync.Mutex
	trip time.Duration
}

func (s *slowest) add(trips roundTrips) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(trips) > 0 {
		s.trip = max(s.trip, trips.median())
	}
}

// try is a check of all that something needs.
type try struct {
	name, well string
	run        func(context.Context) error
}

// tries tries what a Guard and locks need, side by side. What a slow or a silent node is the reason for is said as that, and not as a failure of each.
func (c *check) tries(e *env, nodes []finding, trips *slowest) []finding {
	all := []try{{"guard", "each command, script and channel of a Guard works", func(ctx context.Context) error {
		guard, err := e.guard()
		if err != nil {
			return err
		}
		defer guard.Close()
		return guard.SelfCheck(ctx)
	}}}
	if !c.NoLocks {
		l, err := newLockers(e)
		if err != nil {
			return []finding{{Check: "locks", Result: wrong, Detail: err.Error()}}
		}
		defer l.close()
		const lock = "a lock can be taken and given back"
		all = append(all, try{"mutex", lock, l.mutex.SelfCheck}, try{"rwlock", lock, l.rwlock.SelfCheck},
			try{"semaphore", "a permit can be taken and given back", l.semaphore.SelfCheck})
	}
	within, why := trying, ""
	switch dead := slices.IndexFunc(nodes, isSilent); {
	case dead >= 0:
		within, why = tryingLess, nodes[dead].Node+" does not answer"
	case trips.trip > far:
		why = fmt.Sprintf("Redis is slow: a round trip takes %v", rounded(trips.trip))
	}
	made := &ledger{of: ":{self-check:"}
	e.rdb.AddHook(after(made.note))
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), within)
		defer cancel()
		_ = made.remove(ctx, e.rdb) // what is tried leaves fences and failures, which expire where the user may not
	}()
	found := make([]finding, len(all))
	var trying sync.WaitGroup
	for i, t := range all {
		found[i] = finding{Check: t.name, Result: warning, Detail: notChecked + ", as " + why}
		if trips.trip > tooFar {
			continue
		}
		trying.Go(func() { // owner: tries; stop: within; joined below
			ctx, cancel := context.WithTimeout(e.ctx, within)
			defer cancel()
			switch err := t.run(ctx); {
			case err == nil:
				found[i].Result, found[i].Detail = ok, t.well
			case why == "" || !isUnreachable(err) && !strings.Contains(err.Error(), "CLUSTERDOWN"): // which a node that is silent may be why
				found[i].Result, found[i].Detail = wrong, err.Error()
			}
		})
	}
	trying.Wait()
	return found
}

// leavingNothing tries what a Guard needs, which leaves an epoch if there was none, and with which the pages are compared: a Redis that no instance uses
// would look as if one did afterwards.
func (e *env) leavingNothing(nodes []finding, try func(), compare func() (used bool)) {
	unused := false
	if !slices.ContainsFunc(nodes, isSilent) {
		had, err := e.has(epoch.All)
		unused = err == nil && !had
	}
	try()
	if used := compare(); unused && !used {
		_ = e.forget() // a user who may not has made none
	}
}

func isSilent(f finding) bool { return f.Check == silent && f.Result == wrong }

// causesFirst puts the nodes first that are why something could not be checked.
func causesFirst(nodes, tried []finding) []finding {
	unchecked := slices.ContainsFunc(tried, func(f finding) bool { return strings.HasPrefix(f.Detail, notChecked) })
	isCause := func(f finding) bool { return isSilent(f) || unchecked && f.Check == "latency" && f.Result != ok }
	var first, others []finding
	for _, f := range nodes {
		if !isCause(f) {
			others = append(others, f)
			continue
		}
		if f.Check == "latency" {
			f.Result, f.Detail = wrong, "Redis is slow: "+f.Detail
		}
		first = append(first, f)
	}
	return append(first, others...)
}

// longWait is after how long somebody who waits is told what for.
const longWait = time.Second

// patiently runs f, and says what it waits for, and which node does not answer, when that takes long.
func (e *env) patiently(what string, f func()) {
	patiently(e.asks, func() string { return what + e.silent() }, f)
}

func patiently(to io.Writer, what func() string, f func()) {
	var telling sync.WaitGroup
	over := make(chan struct{})
	telling.Go(func() { // owner: patiently; stop: over; joined below
		long := time.NewTimer(longWait)
		defer long.Stop()
		select {
		case <-long.C:
			_ = complain(to, errors.New("waiting for "+what()), done) // which nobody has to see
		case <-over:
		}
	})
	f()
	close(over)
	telling.Wait()
}

// silent says which nodes that take writes do not answer at once; empty: all do.
func (e *env) silent() string {
	ctx, cancel := context.WithTimeout(e.ctx, longWait/2)
	defer cancel()
	var mu sync.Mutex
	var nodes []string
	ask := func(ctx context.Context, node *redis.Client) error {
		if isUnreachable(node.Ping(ctx).Err()) {
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, node.Options().Addr)
		}
		return nil
	}
	switch rdb := e.rdb.(type) {
	case *redis.ClusterClient:
		_ = rdb.ForEachMaster(ctx, ask) // which it knows
	case *redis.Client:
		_ = ask(ctx, rdb) // always nil
	}
	if nodes == nil {
		return ""
	}
	slices.Sort(nodes)
	return ": " + strings.Join(nodes, ", ") + map[bool]string{true: " does", false: " do"}[len(nodes) == 1] + " not answer"
}
