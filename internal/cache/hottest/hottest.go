// Package hottest finds the keys that are asked for most: by this process at the moment (Ranking), for the tier in memory and package admin, and by a
// fleet (Keys). Each instance counts a sample of its Gets, and now and then adds its counts to those of the fleet: sorted sets in Redis, one for each
// period, of which the last two are read. It loses counts rather than make a Get wait.
package hottest

import (
	"context"
	"embed"
	"errors"
	"slices"
	"strconv"
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
	counted = 1 << 12 // keys of an instance
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

	counts counts
}

// New makes Keys without counts.
func New(cfg Config) *Keys {
	k := &Keys{Config: cfg}
	k.counts = counts{room: counted, every: cfg.Every, turn: k.sendLocked, of: make(map[string]counter), next: time.Now().Add(cfg.Every)}
	return k
}

// Note sees a Get of the key.
func (k *Keys) Note(key string) {
	if k.Keys > 0 && len(key) <= longest {
		k.counts.note(key)
	}
}

// sendLocked adds what was counted, in the background.
func (k *Keys) sendLocked(now time.Time) {
	seen := k.counts.seenLocked(1)
	clear(k.counts.of)
	k.Life.Try(func() { k.add(now, seen) }) // stop: Timeout
}

// Close adds what is left: a deployment replaces instances, and the next ones want to know.
func (k *Keys) Close() {
	k.counts.mu.Lock()
	seen := k.counts.seenLocked(1)
	k.counts.of = nil
	k.counts.mu.Unlock()
	if len(seen) > 0 {
		k.add(time.Now(), seen)
	}
}

// add adds the highest counts to those of the fleet. If Redis does not answer they are lost: what is hot is asked for again.
func (k *Keys) add(now time.Time, counts map[string]int) {
	args := []any{script.Millis(2 * period), Most}
	for _, key := range ranked(counts, k.Keys) {
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
	return ranked(counts, n), nil
}

// set is where Redis has the counts of the period at a time.
func (k *Keys) set(at time.Time) string {
	return keys.Tagged(k.Prefix, name) + ":hottest:" + strconv.FormatInt(at.UnixNano()/int64(period), 10)
}

func (k *Keys) run(ctx context.Context, call script.Call) (*script.Reply, error) {
	return lifecycle.Bounded(ctx, k.Life, k.Timeout, func(ctx context.Context) (*script.Reply, error) {
		cmd := call.Run(ctx, k.Redis)
		return cmd, cmd.Err()
	})
}
