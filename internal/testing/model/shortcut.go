package model

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

// Shortcut is a script whose common case runs before the rest of it.
type Shortcut struct {
	Taken int // how often the common case was one

	whole, common, rest *script.Script
}

const uncommon = "uncommon"

// NewShortcut makes one of the texts that follow each other in the script.
func NewShortcut(fields, common, rest string) *Shortcut {
	return &Shortcut{
		whole:  script.New(Modelled(fields + common + rest)),
		common: script.New(Modelled(fields + common + "return '" + uncommon + "'")),
		rest:   script.New(Modelled(fields + rest)),
	}
}

// Walk leads a lock from state to state, by calls, the passing of time, and accidents: keys and fields that vanish. Wherever a
// call's script has a shortcut, its common case must do what the rest would do, or nothing.
type Walk struct {
	*testing.T
	Redis  *redis.Client
	Rand   *rand.Rand
	Keys   []string // of the lock: a hash and sorted sets
	Except []string // fields that only a common case writes

	// Call returns any call that somebody may make, and the shortcut of its script, or nil.
	Call func() (script.Call, *Shortcut)

	clock int64 // in ms
}

// Run walks that many steps.
func (w *Walk) Run(steps int) {
	w.Helper()
	ctx := context.Background()
	w.clock = 1_700_000_000_000
	for range steps {
		w.happen(ctx)
		at := []any{"s", w.clock / 1000, "us", w.clock%1000*1000 + w.Rand.Int64N(1000)}
		call, s := w.Call()
		w.Redis.HSet(ctx, w.keys()[len(w.Keys)], at...)
		if s != nil {
			w.compare(ctx, s, call)
			call.Script = s.whole
		}
		_ = call.Run(ctx, w.Redis).Err() // after an accident it may fail
	}
	w.Redis.Del(ctx, w.keys()...)
}

// keys are all there are, with the model's own.
func (w *Walk) keys() []string { return append(slices.Clone(w.Keys), w.Keys[0]+":clock") }

// happen lets something happen that is no call.
func (w *Walk) happen(ctx context.Context) {
	switch p := w.Rand.IntN(100); {
	case p < 40:
		w.clock += w.Rand.Int64N(700)
	case p < 50:
		w.clock += w.Rand.Int64N(8000)
	case p < 53:
		w.clock += w.Rand.Int64N(700_000)
	case p < 56:
		w.clock -= w.Rand.Int64N(10_000)
	case p < 62:
		w.Redis.Del(ctx, w.Keys[w.Rand.IntN(len(w.Keys))])
	case p < 72:
		if fields := w.Redis.HKeys(ctx, w.Keys[0]).Val(); len(fields) > 0 {
			slices.Sort(fields)
			w.Redis.HDel(ctx, w.Keys[0], fields[w.Rand.IntN(len(fields))])
		}
	}
}

// compare runs the call by the common case and by the rest, each on a copy of the lock.
func (w *Walk) compare(ctx context.Context, s *Shortcut, call script.Call) {
	w.Helper()
	before, common, rest := w.onCopies(ctx, s, call)
	if strings.HasPrefix(common.reply, uncommon) {
		if !reflect.DeepEqual(common.state, before) {
			w.Errorf("%v is not common, and changes\n%v to\n%v", call.Args, before, common.state)
		}
		return
	}
	s.Taken++
	if !reflect.DeepEqual(common, rest) {
		w.Errorf("%v\non %v at %d\nby the common case: %v\nby the rest:        %v", call.Args, before, w.clock, common, rest)
	}
}

// after is what a script says and leaves.
type after struct {
	reply string
	state []any
}

// onCopies runs a call by both parts of the script, in one request, as most of what a walk takes is the way to the server. It runs them
// by their sources where the server does not know them.
func (w *Walk) onCopies(ctx context.Context, s *Shortcut, call script.Call) (before []any, common, rest after) {
	w.Helper()
	for _, bySource := range []bool{false, true} {
		pipe := w.Redis.Pipeline()
		was := w.state(ctx, pipe, w.Keys)
		c := w.onCopy(ctx, pipe, script.Call{Script: s.common, Args: call.Args}, "common:", bySource)
		r := w.onCopy(ctx, pipe, script.Call{Script: s.rest, Args: call.Args}, "rest:", bySource)
		_, _ = pipe.Exec(ctx) // what the scripts say counts, and state looks at the others
		if before, common, rest = was(), c(), r(); !strings.Contains(common.reply+rest.reply, "NOSCRIPT") {
			break
		}
	}
	return before, common, rest
}

// onCopy queues a call on a copy of the lock.
func (w *Walk) onCopy(ctx context.Context, pipe redis.Pipeliner, call script.Call, name string, bySource bool) (read func() after) {
	for _, key := range w.keys() {
		pipe.Copy(ctx, key, name+key, 0, true)
		call.Keys = append(call.Keys, name+key)
	}
	call.Keys = call.Keys[:len(w.Keys)]
	cmd := call.Command(ctx, bySource)
	_ = pipe.Process(ctx, cmd) // only queues
	state := w.state(ctx, pipe, call.Keys)
	pipe.Del(ctx, append(slices.Clone(call.Keys), name+w.Keys[0]+":clock")...)
	return func() after { return after{fmt.Sprint(cmd.Val(), cmd.Err()), state()} }
}

// state asks for what the keys have, and which of them have no TTL. An empty field is none.
func (w *Walk) state(ctx context.Context, pipe redis.Pipeliner, keys []string) (read func() []any) {
	hash := pipe.HGetAll(ctx, keys[0])
	var sets []*redis.ZSliceCmd
	var ttls []*redis.Cmd
	for _, key := range keys {
		ttls = append(ttls, pipe.Do(ctx, "pttl", key))
	}
	for _, key := range keys[1:] {
		sets = append(sets, pipe.ZRangeWithScores(ctx, key, 0, -1))
	}
	return func() (state []any) {
		fields, err := hash.Result()
		maps.DeleteFunc(fields, func(field, value string) bool { return value == "" || slices.Contains(w.Except, field) })
		state = append(state, fields)
		for _, set := range sets {
			err = cmp.Or(err, set.Err())
			state = append(state, set.Val())
		}
		for i, ttl := range ttls {
			n, unclear := ttl.Int64()
			err = cmp.Or(err, unclear)
			if n == -1 {
				state = append(state, "no TTL: "+strconv.Itoa(i))
			}
		}
		if err != nil {
			w.Fatal(err)
		}
		return state
	}
}
