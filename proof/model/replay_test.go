package model

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/replay"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// replayed is the key that runs are about.
const replayed = "k"

// scriptWorld is a key in Redis, and what the model calls what is there.
type scriptWorld struct {
	replay.Verdict
	t        *testing.T
	edit     replay.Edit
	ctx      context.Context
	rdb      *redis.Client
	space    *protocol.Keyspace
	value    string         // its key
	tokens   map[int]string // of the loads and writers, by their number in the model
	numbers  map[string]int // the other way
	named    replay.Names   // generations of the model, by those of Redis
	acquired map[int]string // the generation that each load got
}

func newScriptWorld(t *testing.T, edit replay.Edit) *scriptWorld {
	t.Helper()
	space := &protocol.Keyspace{Prefix: rand.Text(), Instance: "i", Channel: rand.Text(), LeaseTTL: time.Hour, LoadTimeout: time.Hour}
	return &scriptWorld{
		t: t, edit: edit, ctx: t.Context(), rdb: shared.Client(t), space: space, value: space.ValueKey(replayed),
		tokens: make(map[int]string), numbers: make(map[string]int), named: make(replay.Names), acquired: make(map[int]string),
	}
}

// token returns the token of a load or writer of the model.
func (w *scriptWorld) token(number int) string {
	if w.tokens[number] == "" {
		w.tokens[number] = rand.Text()
		w.numbers[w.tokens[number]] = number
	}
	return w.tokens[number]
}

func (w *scriptWorld) run(call *script.Call) *redis.Cmd {
	w.t.Helper()
	edited := *call
	edited.Script = w.edit(call.Script)
	cmd := edited.Run(w.ctx, w.rdb)
	if cmd.Err() != nil {
		w.Wrong("Redis: %v", cmd.Err())
	}
	return cmd
}

func (w *scriptWorld) runs(cmd redis.Cmder) {
	w.t.Helper()
	if cmd.Err() != nil {
		w.t.Fatal(cmd.Err())
	}
}

// filling is what a load with that token stores of a version.
func (w *scriptWorld) filling(token, generation string, version int) protocol.Filling {
	entry := protocol.Entry{Kind: protocol.Raw, Payload: fmt.Append(nil, version)}
	head, tail := protocol.EncodeEntry(replayed, entry, token)
	return protocol.Filling{Token: token, Generation: generation, TTL: time.Hour, Head: head, Tail: tail}
}

// version returns the version that the entry holds; 0: there is no entry.
func (w *scriptWorld) version(raw []byte) string {
	w.t.Helper()
	if len(raw) == 0 {
		return "0"
	}
	entry, err := protocol.DecodeEntry(replayed, bytes.Clone(raw))
	if err != nil {
		w.Wrong("the entry: %v", err)
	}
	return string(entry.Payload)
}

func (w *scriptWorld) cached() string {
	w.t.Helper()
	raw, err := w.rdb.Get(w.ctx, w.value).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		w.t.Fatal(err)
	}
	return w.version(raw)
}

func (w *scriptWorld) hash(key string) map[string]string {
	w.t.Helper()
	fields, err := w.rdb.HGetAll(w.ctx, key).Result()
	if err != nil {
		w.t.Fatal(err)
	}
	return fields
}

// call says that the model calls a generation of Redis by that number.
func (w *scriptWorld) call(generation, number string) {
	if !w.named.Call(generation, number) {
		w.Wrong("generation %s of the model is another one, or was", number)
	}
}
