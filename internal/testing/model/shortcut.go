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
		w.Redis.HSet(ctx, w.Keys[0]+":clock", "s", w.clock/1000, "us", w.clock%1000*1000+w.Rand.Int64N(1000))
		call, s := w.Call()
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
	pipe := w.Redis.Pipeline()
	read := w.state(ctx, pipe, w.Keys)
	_, _ = pipe.Exec(ctx) // read looks at the errors
	before := read()
	reply, after := w.onCopy(ctx, s.common, call, "common:")
	if strings.HasPrefix(reply, uncommon) {
		if !reflect.DeepEqual(after, before) {
			w.Errorf("%v is not common, and changes\n%v to\n%v", call.Args, before, after)
		}
		return
	}
	s.Taken++
	if want, wanted := w.onCopy(ctx, s.rest, call, "rest:"); reply != want || !reflect.DeepEqual(after, wanted) {
		w.Errorf("%v\non %v at %d\nby the common case: %s\n%v\nby the rest:        %s\n%v", call.Args, before, w.clock, reply, after, want, wanted)
	}
}

// onCopy runs a call by another script on a copy of the lock, in one request.
func (w *Walk) onCopy(ctx context.Context, by *script.Script, call script.Call, name string) (reply string, after []any) {
	copied := script.Call{Script: by, Args: call.Args}
	for _, key := range w.Keys {
		copied.Keys = append(copied.Keys, name+key)
	}
	for _, bySource := range []bool{false, true} {
		pipe := w.Redis.Pipeline()
		for _, key := range w.keys() {
			pipe.Copy(ctx, key, name+key, 0, true)
		}
		cmd := copied.Command(ctx, bySource)
		_ = pipe.Process(ctx, cmd) // only queues
		read := w.state(ctx, pipe, copied.Keys)
		pipe.Del(ctx, append(copied.Keys, name+w.Keys[0]+":clock")...)
		_, _ = pipe.Exec(ctx) // what the script says counts, and read looks at the others
		if err := cmd.Err(); err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return fmt.Sprint(cmd.Val(), cmd.Err()), read()
		}
	}
	return "", nil
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
