package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/admin"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/semaphore"
)

// odd is the name of a lock that no form can hold as it is, and that would be shown backwards.
const odd = "stock\nimport\u202e"

// jobs are the shop's jobs, each under a lock of another kind.
type jobs struct {
	imports *mutex.Locker
	reports *semaphore.Locker
	leaders *mutex.Quorum
	servers []*redis.Client // of the quorum: three databases of one Redis stand for them
}

func openJobs(rdb *redis.Client) (j *jobs, err error) {
	j = new(jobs)
	var servers []mutex.Redis
	for n := range 3 {
		options := *rdb.Options()
		options.DB = n
		j.servers = append(j.servers, redis.NewClient(&options))
		servers = append(servers, j.servers[n])
	}
	var errs [3]error
	j.imports, errs[0] = mutex.New(rdb, mutex.Config{Prefix: "shop-lock", RedisTimeout: backends.Patience})
	j.reports, errs[1] = semaphore.New(rdb, semaphore.Config{Prefix: "shop-lock", Permits: 3, Instance: "shop-1", RedisTimeout: backends.Patience})
	j.leaders, errs[2] = mutex.NewQuorum(servers, mutex.Config{Prefix: "shop-lock", RedisTimeout: backends.Patience})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// lockers are what the page shows.
func (j *jobs) lockers() []admin.Locker { return []admin.Locker{j.imports, j.reports, j.leaders} }

// run runs jobs until ctx ends: an import that never ends by itself, reports, written by at most three at a time, and a leader.
func (j *jobs) run(ctx context.Context, tasks *sync.WaitGroup) {
	again := func(times int, do func() error) {
		for range times {
			tasks.Go(func() { // owner: the shop; stop: ctx; joined by its close
				for ctx.Err() == nil {
					_ = do() // it is tried again
				}
			})
		}
	}
	again(1, func() error { return j.imports.Do(ctx, "nightly import", hang[*mutex.Lease]) })
	again(1, func() error { return j.imports.Do(ctx, odd, hang[*mutex.Lease]) })
	again(1, func() error { return j.leaders.Do(ctx, "leader", hang[*mutex.Lease]) })
	again(5, func() error {
		return j.reports.Do(ctx, "reports", func(ctx context.Context, _ *semaphore.Lease) error {
			select {
			case <-time.After(20 * time.Second): // it takes long to write one
			case <-ctx.Done():
			}
			return nil
		})
	})
}

// hang works until the lock is lost or the shop closes.
func hang[L any](held context.Context, _ L) error {
	<-held.Done()
	return nil
}

func (j *jobs) close() error {
	if j.imports != nil {
		_ = j.imports.Close() // always nil
	}
	if j.reports != nil {
		_ = j.reports.Close() // the same
	}
	if j.leaders != nil {
		_ = j.leaders.Close() // the same
	}
	var errs []error
	for _, server := range j.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(errs...)
}
