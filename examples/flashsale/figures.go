package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/examples/internal/program"
	"github.com/cacheguard/go/examples/internal/table"
)

// figures are what -json writes: a report of one scenario, as bench/cmd/compare -from reads and draws it.
type figures struct {
	About     about
	Scenarios []scenario
}

type about struct {
	Began       time.Time
	Command, Go string
	Rounds      int
}

type scenario struct {
	Name, About string
	Metrics     []metric
	Cases       []*sale
}

type metric struct {
	Name, Unit, Better string
	Main               bool
}

// sale is a case: all locks with the same stock and crowd.
type sale struct {
	Name string
	Rows []*lockRow
}

// lockRow is a lock. Rows are grouped by what a lock survives.
type lockRow struct {
	Name    string
	Ours    bool
	Promise string
	Rounds  []map[string]float64
}

// addTo adds a round to the file, which is new or has rounds of the same sale.
func (s *settings) addTo(file string, round []lockRow) error {
	all, err := readFigures(file)
	if err != nil {
		return err
	}
	if len(all.Scenarios) == 0 {
		all = s.noFigures()
	}
	rows := &all.Scenarios[0].Cases[0].Rows
	for _, r := range round {
		i := slices.IndexFunc(*rows, func(other *lockRow) bool { return other.Name == r.Name })
		if i < 0 {
			*rows = append(*rows, &r)
			continue
		}
		(*rows)[i].Rounds = append((*rows)[i].Rounds, r.Rounds...)
	}
	all.About.Rounds++
	text, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func readFigures(file string) (all figures, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, err
	}
	return all, json.Unmarshal(text, &all)
}

func (s *settings) noFigures() figures {
	return figures{
		About: about{Began: time.Now(), Command: "go run ./examples/flashsale -lock all -json FILE", Go: runtime.Version()},
		Scenarios: []scenario{{
			Name: "flash sale",
			About: fmt.Sprintf("%d instances of a shop sell %s units to %s buyers, %d at a time, each from HTTP request to answer under the one lock of the stock. "+
				"The stock and the buyers are in Redis; only the lock is elsewhere.", instances, table.Count(s.stock), table.Count(s.clients*s.each), s.clients),
			Metrics: []metric{{"orders", "/s", "higher", true}, {"p99", "ms", "lower", false}},
			Cases:   []*sale{{Name: table.Count(s.stock) + " units"}},
		}},
	}
}

// rowOf is what a sale says of its lock.
func rowOf(r result, survives string) lockRow {
	promise := "survives " + strings.Replace(survives, "that", "a dead holder", 1) // here, no other stands before it
	if r.wrong {
		promise = "sells units twice"
	}
	return lockRow{
		Name: r.name, Ours: !r.wrong, Promise: promise,
		Rounds: []map[string]float64{{
			"orders": float64(r.sold) / r.took.Seconds(), "p99": float64(table.Quantile(r.waits, 0.99)) / float64(time.Millisecond),
		}},
	}
}

// Everything in this file is wrong. It shows how each goes wrong.

// unlocked looks and writes, and so does everybody else in between.
type unlocked struct{ shelf }

func openUnlocked(o opening) (seller, error) { return unlocked{newShelf(o)}, nil }

func (s unlocked) Sell(ctx context.Context, user int) error { return s.sell(ctx, user) }

// inProcess keeps the callers of one instance apart, and not those of different ones.
type inProcess struct {
	shelf
	mu *sync.Mutex
}

func openInProcess(o opening) (seller, error) { return inProcess{newShelf(o), new(sync.Mutex)}, nil }

func (s inProcess) Sell(ctx context.Context, user int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sell(ctx, user)
}

// handLocked has the lock of the tutorials: SET NX with a lease that nobody renews, and a poll.
type handLocked struct {
	shelf
	unlock func(ctx context.Context, rdb *redis.Client, key, token string) error
}

// openBlindDelete unlocks with DEL. A holder that comes back after its lease has ended deletes the lock of somebody else, whose own
// DEL then deletes that of a third: from then on, there are always two at work.
func openBlindDelete(o opening) (seller, error) {
	return handLocked{newShelf(o), func(ctx context.Context, rdb *redis.Client, key, _ string) error {
		return rdb.Del(ctx, key).Err()
	}}, nil
}

var deleteOwn = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end return 0`)

// openShortLease deletes its own lock only. But work that takes longer than the lease still meets the next one's.
func openShortLease(o opening) (seller, error) {
	return handLocked{newShelf(o), func(ctx context.Context, rdb *redis.Client, key, token string) error {
		return deleteOwn.Run(ctx, rdb, []string{key}, token).Err()
	}}, nil
}

func (s handLocked) Sell(ctx context.Context, user int) error {
	key, token := s.prefix+":handlock", rand.Text()
	for {
		got, err := s.rdb.SetNX(ctx, key, token, s.lease).Result()
		if err != nil {
			return err
		}
		if got {
			break
		}
		if !program.Pause(ctx, time.Millisecond+mathrand.N(4*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
	err := s.sell(ctx, user)
	if failed := s.unlock(context.WithoutCancel(ctx), s.rdb, key, token); err == nil {
		err = failed
	}
	return err
}
