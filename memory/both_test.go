package memory

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name Redis gives a script is its SHA-1
	_ "embed"     // the scripts
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

var (
	//go:embed testdata/modelled.lua
	modelled string
	//go:embed testdata/look.lua
	look string
	//go:embed testdata/tick.lua
	tick string
)

// call is a script, or a plain command, whose name is in capital letters.
type call struct {
	name       string
	keys, args []string
}

func (c call) String() string { return fmt.Sprintf("%s %q %q", c.name, c.keys, c.args) }

// step is a call, when it ran, and what it did.
type step struct {
	micros      int64
	call        call
	reply       string
	said, state []string
}

// both are two engines, with one clock.
type both struct {
	micros int64
	real   *redis.Client
	here   *redis.Client
	engine *engine
	said   []string

	trail []step // what the last walk did

	fills   func() bool    // nil, or tells before each call whether neither has room for it
	refused map[string]int // calls that said OOM, by their names

	scripts    map[string]*script.Script // as they run on the real one
	texts      map[string]string
	functions  map[string]function // as they run here, by their hash
	hashes     map[string]string   // of the scripts, by their names
	look, tick *script.Script
	plain      *script.Script
}

func newBoth(t testing.TB, rdb *redis.Client) *both {
	t.Helper()
	b := &both{real: rdb, texts: sources(t), scripts: make(map[string]*script.Script), functions: make(map[string]function), hashes: make(map[string]string), look: script.New(look), tick: script.New(tick)}
	for name, text := range b.texts {
		sum := sha1.Sum([]byte(text)) //nolint:gosec // the name Redis gives a script is its SHA-1
		b.hashes[name] = hex.EncodeToString(sum[:])
		b.functions[b.hashes[name]] = ported[essence(text)].named()
		b.scripts[name] = script.New(model(text))
	}
	b.plain = script.New(model("return redis.call(unpack(ARGV))"))
	return b
}

// model puts the text of a script into the test's.
func model(text string) string {
	const flags = "#!lua flags=allow-oom\n"
	text, has := strings.CutPrefix(text, flags)
	text = modelled + "local function script()\n" + text + "\nend\nreturn redis.finish(script)"
	if has {
		text = flags + text
	}
	return text
}

// begin empties both.
func (b *both) begin(t testing.TB) {
	t.Helper()
	b.end(t)
	b.micros = 1_700_000_000_123_456
	if err := b.real.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	b.trail = nil
	b.fresh(t)
}

// fresh makes an empty engine.
func (b *both) fresh(t testing.TB) {
	t.Helper()
	var err error
	b.here, b.engine, err = open(Config{MaxBytes: 1 << 30, Now: func() time.Time { return time.UnixMicro(b.micros) }})
	if err != nil {
		t.Fatal(err)
	}
	b.said = nil
	maps.Copy(b.engine.scripts, b.functions)
	b.engine.said = func(channel, message string) { b.said = append(b.said, channel+" "+message) }
}

func (b *both) end(t testing.TB) {
	t.Helper()
	if b.here != nil {
		if err := b.here.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a call on both, and returns its reply, and the difference that it has made: empty if there is none.
func (b *both) run(t testing.TB, c call) (reply any, difference string) {
	t.Helper()
	full := b.fills != nil && b.fills()
	there, found, said := b.onReal(t, c, full)
	here := b.crowded(c, full)
	if strings.Contains(there, "OOM") {
		b.refused[c.name]++
	}
	state := b.state()
	slices.Sort(said)
	slices.Sort(b.said)
	b.trail = append(b.trail, step{b.micros, c, here.text, b.said, state})
	defer func() { b.said = nil }()
	switch {
	case there != here.text:
		return here.reply, fmt.Sprintf("replies\n%s\nand here\n%s", there, here.text)
	case !slices.Equal(said, b.said):
		return here.reply, fmt.Sprintf("says\n%q\nand here\n%q", said, b.said)
	case !slices.Equal(found, state):
		return here.reply, "leaves" + unlike(found, state)
	}
	return here.reply, ""
}

// unlike are the lines that only one of two has.
func unlike(there, here []string) string {
	var text strings.Builder
	for _, line := range there {
		if !slices.Contains(here, line) {
			fmt.Fprintf(&text, "\n     %q", line)
		}
	}
	text.WriteString("\nand here")
	for _, line := range here {
		if !slices.Contains(there, line) {
			fmt.Fprintf(&text, "\n     %q", line)
		}
	}
	return text.String()
}

type replied struct {
	reply any
	text  string
}

// said is a reply as a text: of an error only the first word, as Redis says where in a script it came from.
func textOf(reply any, err error) string {
	if err != nil && !errors.Is(err, redis.Nil) {
		word, _, _ := strings.Cut(err.Error(), " ")
		return "error " + word
	}
	if parts, is := reply.([]any); is {
		all := make([]string, len(parts))
		for i, part := range parts {
			failed, _ := part.(error)
			all[i] = textOf(part, failed)
		}
		return fmt.Sprintf("%q", all)
	}
	return fmt.Sprintf("%T %v", reply, reply)
}

func (b *both) onReal(t testing.TB, c call, full bool) (reply string, found, said []string) {
	t.Helper()
	ctx := context.Background()
	does, keys, args := b.scripts[c.name], c.keys, c.args
	if does == nil {
		does, args, keys = b.plain, slices.Concat([]string{c.name}, c.keys, c.args), nil
	}
	for _, bySource := range []bool{false, true} {
		pipe := b.real.Pipeline()
		ticks := script.Call{Script: b.tick, Args: []any{b.micros / 1e6, b.micros % 1e6, b.micros / 1000}}
		runs := script.Call{Script: does, Keys: keys, Args: anys(args)}
		looks := script.Call{Script: b.look}
		cmds := []*redis.Cmd{ticks.Command(ctx, bySource), runs.Command(ctx, bySource), looks.Command(ctx, bySource)}
		_ = pipe.Process(ctx, cmds[0]) // only queues, as do those below
		if full {
			pipe.ConfigSet(ctx, "maxmemory", "1")
		}
		_ = pipe.Process(ctx, cmds[1])
		if full {
			pipe.ConfigSet(ctx, "maxmemory", "0")
		}
		_ = pipe.Process(ctx, cmds[2])
		_, _ = pipe.Exec(ctx) // each has its error
		if slices.ContainsFunc(cmds, func(cmd *redis.Cmd) bool { return script.Says(cmd.Err(), "NOSCRIPT") }) && !bySource {
			continue
		}
		seen, err := cmds[2].Slice()
		if err = errors.Join(err, cmds[0].Err()); err != nil {
			t.Fatal(err)
		}
		return textOf(cmds[1].Val(), cmds[1].Err()), strs(seen[0]), strs(seen[1])
	}
	t.Fatal("Redis knows none of the scripts")
	return "", nil, nil
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i := range texts {
		all[i] = texts[i]
	}
	return all
}

func strs(reply any) (all []string) {
	for _, part := range reply.([]any) {
		all = append(all, part.(string))
	}
	return all
}

// crowded is onHere, and with full nothing may take memory, and no value gives way.
func (b *both) crowded(c call, full bool) replied {
	if full {
		b.engine.keys.max = -1
		defer func() { b.engine.keys.max = 1 << 30 }()
	}
	return b.onHere(c)
}

func (b *both) onHere(c call) (r replied) {
	ctx := context.Background()
	var cmd *redis.Cmd
	if hash := b.hashes[c.name]; hash != "" {
		args := slices.Concat([]any{"evalsha", hash, len(c.keys)}, anys(c.keys), anys(c.args))
		cmd = b.here.Do(ctx, args...)
	} else {
		cmd = b.here.Do(ctx, slices.Concat([]any{c.name}, anys(c.keys), anys(c.args))...)
	}
	return replied{cmd.Val(), textOf(cmd.Val(), cmd.Err())}
}

// state is, as look.lua has it, what this engine holds.
func (b *both) state() (all []string) {
	b.engine.mu.Lock()
	defer b.engine.mu.Unlock()
	for key, it := range b.engine.keys.items {
		kind, parts, ends := "", []string{}, "never"
		switch it.kind {
		case str:
			kind, parts = "string", []string{it.text}
		case hashes:
			kind = "hash"
			for _, p := range it.hash.pairs {
				parts = append(parts, p.field+"="+p.value)
			}
			slices.Sort(parts)
		case sorted:
			kind = "zset"
			for _, s := range it.set.all {
				parts = append(parts, s.member, itoa(s.score))
			}
		case listed:
			kind, parts = "list", slices.Clone(it.list)
			slices.Reverse(parts)
		}
		if it.ends != 0 {
			ends = itoa(it.ends)
		}
		all = append(all, key+" "+kind+" "+strings.Join(parts, " ")+" until "+ends)
	}
	slices.Sort(all)
	return all
}

// differs does the steps of a trail here, with a difference planted, and tells whether one of them shows it.
func (b *both) differs(t testing.TB, trail []step, plant func(name string, r *run)) bool {
	t.Helper()
	b.end(t)
	b.micros = trail[0].micros
	b.fresh(t)
	b.engine.planted = plant
	for _, s := range trail {
		b.micros = s.micros
		here := b.onHere(s.call)
		slices.Sort(b.said)
		if here.text != s.reply || !slices.Equal(b.said, s.said) || !slices.Equal(b.state(), s.state) {
			return true
		}
		b.said = nil
	}
	return false
}

// pass lets time pass, mostly less than a lease lasts.
func (b *both) pass(r *rand.Rand) {
	ms := int64(0)
	switch p := r.IntN(100); {
	case p < 50:
	case p < 85:
		ms = r.Int64N(400)
	case p < 97:
		ms = r.Int64N(6000)
	case p < 99:
		ms = r.Int64N(120_000)
	default:
		ms = r.Int64N(1_500_000)
	}
	b.micros += ms*1000 + r.Int64N(3)*r.Int64N(1000)
}
