// Package hottest finds the keys that a fleet is asked for most. Each instance counts a sample of its Gets, and now and then adds its counts to
// those of the fleet: sorted sets in Redis, one for each period, of which the last two are read. It loses counts rather than make a Get wait.
package hottest

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

const (
	// Most is how many keys of the fleet can be asked for.
	Most = 10_000

	// Every is how often an instance in use adds its counts.
	Every = 10 * time.Second

	period  = 5 * time.Minute
	sampled = 16      // one Get in that many is counted
	counted = 1 << 12 // keys of an instance; while there are so many, others are not counted
	longest = 1 << 10 // bytes of a key that is counted
	name    = "hottest"
)

//go:embed lua/*.lua
var files embed.FS

var addScript, topScript = script.Compile(files, "add"), script.Compile(files, "top")

// Config is what counting needs of a Guard.
type Config struct {
	Redis   script.Processor
	Prefix  string
	Timeout time.Duration // of an operation on Redis
	Life    *lifecycle.Life

	Keys  int           // that the instance adds at a time; 0: it counts nothing
	Every time.Duration // how often
}

// Keys counts which keys the instance is asked for, and knows those of the fleet. Use New.
type Keys struct {
	Config

	mu     sync.Mutex
	counts map[string]int
	next   time.Time // when to add them
}

// New makes Keys without counts.
func New(cfg Config) *Keys {
	return &Keys{Config: cfg, counts: make(map[string]int), next: time.Now().Add(cfg.Every)}
}

// Note sees a Get of the key. It costs a few nanoseconds, and never waits.
func (k *Keys) Note(key string) {
	if k.Keys > 0 && rand.Uint32()%sampled == 0 && len(key) <= longest && k.mu.TryLock() {
		defer k.mu.Unlock()
		k.countLocked(key)
	}
}

func (k *Keys) countLocked(key string) {
	if k.counts == nil {
		return // closed
	}
	if _, known := k.counts[key]; known || len(k.counts) < counted {
		k.counts[key]++
	}
	now := time.Now()
	if now.Before(k.next) {
		return
	}
	counts := k.counts
	k.counts, k.next = make(map[string]int), now.Add(k.Every)
	k.Life.Try(func() { k.add(now, counts) }) // stop: Timeout
}

// Close adds what is left: a deployment replaces instances, and the next ones want to know.
func (k *Keys) Close() {
	k.mu.Lock()
	counts := k.counts
	k.counts = nil
	k.mu.Unlock()
	if len(counts) > 0 {
		k.add(time.Now(), counts)
	}
}

// add adds the highest counts to those of the fleet. If Redis does not answer they are lost: what is hot is asked for again.
func (k *Keys) add(now time.Time, counts map[string]int) {
	hottest := byCount(counts)
	args := []any{script.Millis(2 * period), Most}
	for _, key := range hottest[:min(k.Keys, len(hottest))] {
		args = append(args, counts[key]*sampled, key)
	}
	_, _ = k.run(context.Background(), script.Call{Script: addScript, Keys: []string{k.set(now)}, Args: args})
}

// Top are the n keys that the fleet was asked for most in this period and the one before, the first most.
func (k *Keys) Top(ctx context.Context, n int) ([]string, error) {
	now := time.Now()
	call := script.Call{Script: topScript, Keys: []string{k.set(now), k.set(now.Add(-period))}, Args: []any{n - 1}}
	cmd, err := k.run(ctx, call)
	if err != nil {
		return nil, err
	}
	reply, err := cmd.StringSlice()
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int, len(reply)/2)
	for pair := range slices.Chunk(reply, 2) {
		count, err := strconv.ParseFloat(pair[len(pair)-1], 64)
		if err != nil {
			return nil, errors.New("no count in the reply")
		}
		counts[pair[0]] += int(count)
	}
	hottest := byCount(counts)
	return hottest[:min(n, len(hottest))], nil
}

// set is where Redis has the counts of the period at a time.
func (k *Keys) set(at time.Time) string {
	return keys.Tagged(k.Prefix, name) + ":hottest:" + strconv.FormatInt(at.UnixNano()/int64(period), 10)
}

func (k *Keys) run(ctx context.Context, call script.Call) (*script.Reply, error) {
	return lifecycle.Bounded(ctx, k.Life, k.Timeout, func(ctx context.Context) (*script.Reply, error) {
		cmd := call.Run(ctx, k.Redis)
		return cmd, cmd.Err()
	}, nil)
}

func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
}
