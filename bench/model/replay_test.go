package model

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/script"
	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }

// world is what a run of a model is replayed on.
type world interface {
	do(step Step)
	state() map[string]string // what there is of the state, under the model's names
}

// drawn are the runs of testdata that SPIN drew of a model; the command draws others.
func drawn(t *testing.T, name string) (runs [][]Step) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", name+"-*.txt"))
	if err != nil || len(found) < 10 {
		t.Fatalf("%d runs of %s: %v", len(found), name, err)
	}
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, steps(string(text)))
	}
	return runs
}

// replay takes the steps of a run, and compares the states after each.
func replay(t *testing.T, run []Step, w world) {
	t.Helper()
	for i, step := range run {
		w.do(step)
		if t.Failed() {
			t.Fatalf("in this run:\n%s", Sequence(run[:i+1]))
		}
		if step.State == nil {
			continue
		}
		for name, got := range w.state() {
			if want := step.State[name]; got != want {
				t.Fatalf("after these steps, %s is %s, and %s in the model:\n%s", name, got, want, Sequence(run[:i+1]))
			}
		}
	}
}

// replayed is the key that runs are about.
const replayed = "k"

// scriptWorld is a key in Redis, and what the model calls what is there.
type scriptWorld struct {
	t        *testing.T
	ctx      context.Context
	rdb      *redis.Client
	space    *protocol.Keyspace
	value    string            // its key
	tokens   map[int]string    // of the loads and writers, by their number in the model
	numbers  map[string]int    // the other way
	named    map[string]string // generations of the model, by those of Redis
	acquired map[int]string    // the generation that each load got
}

func newScriptWorld(t *testing.T) *scriptWorld {
	t.Helper()
	space := &protocol.Keyspace{Prefix: rand.Text(), Instance: "i", Channel: rand.Text(), LeaseTTL: time.Hour, LoadTimeout: time.Hour}
	return &scriptWorld{
		t: t, ctx: t.Context(), rdb: shared.Client(t), space: space, value: space.ValueKey(replayed),
		tokens: make(map[int]string), numbers: make(map[string]int), named: make(map[string]string), acquired: make(map[int]string),
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
	cmd := call.Run(w.ctx, w.rdb)
	if cmd.Err() != nil {
		w.t.Fatal(cmd.Err())
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
		w.t.Fatal(err)
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
	w.t.Helper()
	for other, called := range w.named {
		if (other == generation) != (called == number) {
			w.t.Errorf("generation %s is %s, and %s is %s", other, called, generation, number)
		}
	}
	w.named[generation] = number
}

func bit(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
