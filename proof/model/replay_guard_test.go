package model

import (
	"context"
	"crypto/rand"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/internal/testing/replay"
)

// patience is for how long a step of a Guard is waited for.
const patience = 20 * time.Second

// gate holds the requests of a Guard about the key until the run has them go: reads, acquire.lua and fill.lua.
type gate struct {
	value   string      // the key
	arrived chan string // what has come
	let     chan struct{}
	done    chan struct{}
	over    <-chan struct{} // the test's end
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return g.pass([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return g.pass(cmds, func() error { return next(ctx, cmds) })
	}
}

func (g *gate) pass(cmds []redis.Cmder, next func() error) error {
	kind := ""
	for _, cmd := range cmds {
		if k := g.kind(cmd); k != "" {
			kind = k
		}
	}
	if kind == "" {
		return next()
	}
	if !handed(g.over, g.arrived, kind) {
		return context.Canceled
	}
	select {
	case <-g.let:
	case <-g.over:
		return context.Canceled
	}
	err := next()
	handed(g.over, g.done, struct{}{})
	return err
}

// handed returns whether somebody took it before the test was over: one that has failed takes nothing more.
func handed[T any](over <-chan struct{}, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-over:
		return false
	}
}

var gated = map[string]string{shaOf("acquire"): "acquire", shaOf("fill"): "fill"}

func shaOf(name string) string {
	return redis.NewScript(protocol.Source(name)).Hash()
}

// kind is what the model calls a command; empty: it is not about the key.
func (g *gate) kind(cmd redis.Cmder) string {
	args := cmd.Args()
	switch cmd.Name() {
	case "get", "mget":
		for _, arg := range args[1:] {
			if text(arg) == g.value {
				return "read"
			}
		}
	case "evalsha", "eval":
		if len(args) > 3 && text(args[3]) == g.value {
			return gated[text(args[1])]
		}
	}
	return ""
}

func text(arg any) string {
	switch s := arg.(type) {
	case string:
		return s
	case *string:
		return *s
	}
	return ""
}

// got is what a Get has returned.
type got struct {
	version string
	err     error
}

// guarded is an instance: a Guard that makes one Get, held at each step.
type guarded struct {
	guard *cacheguard.Guard
	gate  *gate
	load  chan string // the loader has begun, and gets what it is to return
	begun chan struct{}
	got   chan got
	once  bool // the Get has been compared
}

// guardWorld replays runs of load.pml on Guards.
type guardWorld struct {
	*scriptWorld
	instances []*guarded
	writer    *cacheguard.Guard
}

func newGuardWorld(t *testing.T, instances int) *guardWorld {
	t.Helper()
	w := &guardWorld{scriptWorld: newScriptWorld(t, replay.AsIs)}
	config := cacheguard.Config{
		Prefix: rand.Text(), TTL: time.Hour, LeaseTTL: time.Minute, WaitTimeout: time.Minute, RedisTimeout: time.Minute, EarlyRefresh: -1,
		HedgeAfter: -1, // else a request that is held is a slow one
	}
	w.value = keys.Tagged(config.Prefix, "k")
	for _, name := range []string{"acquire", "fill"} {
		w.runs(w.rdb.ScriptLoad(w.ctx, protocol.Source(name)))
	}
	w.writer = w.newGuard(w.rdb, config)
	for range instances {
		i := &guarded{
			gate: &gate{value: w.value, arrived: make(chan string), let: make(chan struct{}), done: make(chan struct{}), over: w.ctx.Done()},
			load: make(chan string), begun: make(chan struct{}), got: make(chan got, 1),
		}
		rdb := shared.Client(t)
		rdb.AddHook(i.gate)
		i.guard = w.newGuard(rdb, config)
		w.listen(i.guard, config.Prefix)
		w.instances = append(w.instances, i)
	}
	return w
}

func (w *guardWorld) newGuard(rdb *redis.Client, config cacheguard.Config) *cacheguard.Guard {
	guard, err := cacheguard.New(rdb, config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = guard.Close() })
	return guard
}

// listen has a Guard wait for another's load, and so subscribe.
func (w *guardWorld) listen(guard *cacheguard.Guard, prefix string) {
	w.t.Helper()
	space, key := *w.space, rand.Text()
	space.Prefix = prefix
	value := space.ValueKey(key)
	w.run(space.Acquire(value, protocol.Request{Token: rand.Text(), Take: true}))
	waits := make(chan error, 1)
	go func() { // owner: the test, which waits for it; stop: the lease ends
		_, err := cacheguard.Get(w.ctx, guard, key, func(context.Context) (string, error) { return "", nil })
		waits <- err
	}()
	redistest.Await(w.t, "the Guard waits for a message", func() bool { return waiters(w.hash(protocol.LeaseKey(value))) > 0 })
	w.run(space.Invalidate(value, "notice"))
	if err := await(w, "the Get", waits); err != nil {
		w.t.Fatal(err)
	}
}

// waiters are how many wait for a lease.
func waiters(fields map[string]string) (count int) {
	for name := range fields {
		if strings.HasPrefix(name, "inbox:") {
			count++
		}
	}
	return count
}

// await takes what comes; the run has failed if it does not.
func await[T any](w *guardWorld, what string, from <-chan T) (v T) {
	w.t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		w.Wrong("waited in vain for %s", what)
	}
	return v
}

func (w *guardWorld) pass(i *guarded, what string) {
	w.t.Helper()
	if kind := await(w, what, i.gate.arrived); kind != what {
		w.Wrong("the Guard sends %s", kind)
		return
	}
	if !handed(w.ctx.Done(), i.gate.let, struct{}{}) {
		return
	}
	await(w, "the answer to "+what, i.gate.done)
}

func (w *guardWorld) Do(step replay.Step) {
	w.t.Helper()
	var i *guarded
	switch step.Do[0] {
	case "read", "acquire", "load", "fill", "return":
		i = w.instances[step.Number(1)]
	}
	switch step.Do[0] {
	case "read":
		go i.get(w.ctx) // owner: the test, which waits for what it got; stop: its context
		w.pass(i, "read")
	case "acquire":
		w.pass(i, "acquire")
	case "load":
		await(w, "the loader", i.begun)
		if w.Problem() == "" {
			i.load <- step.Do[2]
		}
	case "fill":
		w.pass(i, "fill")
	case "invalidate":
		if err := w.writer.Invalidate(w.ctx, "k"); err != nil {
			w.Wrong("Invalidate: %v", err)
		}
	case "return":
		if i.once { // the model says what another call would get
			return
		}
		i.once = true
		if g := await(w, "the Get", i.got); g.err != nil || g.version != step.Do[2] {
			w.Wrong("the Get returns version %s: %v", g.version, g.err)
		}
	}
}

func (i *guarded) get(ctx context.Context) {
	version, err := cacheguard.Get(ctx, i.guard, "k", func(context.Context) (string, error) {
		if !handed(ctx.Done(), i.begun, struct{}{}) {
			return "", ctx.Err()
		}
		select {
		case version := <-i.load:
			return version, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	i.got <- got{version, err}
}

func (w *guardWorld) State() map[string]string {
	w.t.Helper()
	fields := w.hash(protocol.LeaseKey(w.value))
	return map[string]string{"value": w.cached(), "held": replay.Bit(fields["token"] != ""), "waited": replay.Bit(waiters(fields) > 0)}
}

func TestRunsOfTheModelOfLoadsAreRunsOfGuards(t *testing.T) {
	t.Parallel()
	for file, run := range replay.Drawn(t, "guard") {
		for _, step := range run {
			if s := step.State; s != nil {
				s["held"], s["waited"] = replay.Bit(s["token"] != "0"), replay.Bit(s["inbox"] != "0")
			}
		}
		if wrong := replay.Run(run, newGuardWorld(t, 3)); wrong != "" {
			t.Fatalf("%s: %s", file, wrong)
		}
	}
}
