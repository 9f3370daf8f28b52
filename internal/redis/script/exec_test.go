package script_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// If Redis refuses the connection of a pipeline, go-redis tells the pipeline alone.
func TestNoCommandOfAPipelineEndsWithNeitherReplyNorError(t *testing.T) {
	t.Parallel()
	client := func(o redis.Options) *redis.Client {
		o.Addr = shared.Addr()
		c := redis.NewClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	wrong := redis.Options{Username: "nobody", Password: "x"}
	ring := func(shards map[string]redis.Options) *redis.Ring {
		o := &redis.RingOptions{Addrs: make(map[string]string), HeartbeatFrequency: time.Hour}
		o.NewClient = func(shard *redis.Options) *redis.Client { return client(shards[shard.Addr]) }
		for name := range shards {
			o.Addrs[name] = name
		}
		r := redis.NewRing(o)
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	expect.Each(t, map[string]script.Pipeliner{
		"a wrong password": client(wrong), "no such database": client(redis.Options{DB: 1 << 20}), "once": script.OncePipeliner(client(wrong)),
		"a ring": ring(map[string]redis.Options{"a": wrong, "b": wrong}), "a shard of a ring": ring(map[string]redis.Options{"a": wrong, "b": {}}),
	}, func(t *testing.T, _ string, rdb script.Pipeliner) {
		var calls []*script.Call
		for i := range 20 { // of a ring, some are at each shard, and the good one's have other errors
			calls = append(calls, call(script.Command("get"), fmt.Sprint("absent", i)))
		}
		failed := 0
		for i, cmd := range script.RunAll(context.Background(), rdb, calls) {
			switch {
			case cmd.Err() == nil:
				t.Errorf("command %d ended with neither reply nor error: %v", i, cmd)
			case !errors.Is(cmd.Err(), redis.Nil):
				failed++
			}
		}
		if failed == 0 {
			t.Error("none failed")
		}
	})
}

// Within a script, Redis 7.0 says neither NOPERM nor which command.
func TestAScriptThatTheUserMayNotRunToItsEndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	rdb, set := shared.Client(t, shared.As(t, "~*", "+@all", "-hset")), call(script.New("return redis.call('HSET', KEYS[1], 'a', 'b')"), "hash")
	for name, err := range map[string]error{"alone": set.Run(t.Context(), rdb).Err(), "in a pipeline": script.RunAll(t.Context(), rdb, []*script.Call{set})[0].Err()} {
		if !script.Says(err, "NOPERM ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// To an unauthenticated connection, Redis refuses a command of more than ten arguments before it looks whether there is a password, and hangs up.
func TestALongCommandWithoutAPasswordIsRefusedAsAShortOneIs(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	around := server.Client(t)
	rdb := server.Client(t, func(o *redis.Options) { o.MaxRetries = -1 })
	expect.Must(t, errors.Join(around.Ping(t.Context()).Err(), around.ConfigSet(t.Context(), "requirepass", "secret").Err()))
	for _, arguments := range []int{1, 20} {
		long := call(script.New("return 1"), "key")
		long.Args = slices.Repeat([]any{"x"}, arguments)
		for name, err := range map[string]error{"alone": long.Run(t.Context(), rdb).Err(), "in a pipeline": script.RunAll(t.Context(), rdb, []*script.Call{long})[0].Err()} {
			if !script.Says(err, "NOAUTH ") {
				t.Errorf("%d arguments, %s: %v", arguments, name, err)
			}
		}
	}
}

// A pipeline's error counts as well as each command's, and Exec looks at both.
func TestPipelinesRunInOnePlace(t *testing.T) {
	t.Parallel()
	run := regexp.MustCompile(`\.Exec\([^(),]+\)|\.(Tx)?Pipelined\(|\.TxPipeline\(`)
	root, seen := filepath.Join("..", "..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{".git", ".tools", "bench", "consensus", "examples", "internal/testing", "proof"}, name) {
				return filepath.SkipDir // other programs', which look for themselves; SQL
			}
			return nil
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		seen += strings.Count(string(text), ".Pipeline()")
		if run.Match(text) && name != "internal/redis/script/send.go" && name != "cmd/cacheguardctl/ledger.go" { // which returns the pipeline's error
			t.Errorf("%s runs a pipeline: script.Exec sees to it that no command ends with neither reply nor error", name)
		}
		return err
	})
	if err != nil || seen < 4 {
		t.Errorf("%d pipelines, %v", seen, err)
	}
}

func TestOnceSendsNothingAgainThatWasNotAnswered(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	counts := script.New("return redis.call('INCR', KEYS[1])")
	key := rand.Text()
	expect.Must(t, call(counts, key).Run(t.Context(), script.Once(rdb)).Err())
	p.On(redistest.Command("evalsha"), redistest.DropReply).Times(1)
	expect.Fails(t, call(counts, key).Run(t.Context(), script.Once(rdb)).Err())
	expect.Returns(t, 3, nil)(call(counts, key).Run(t.Context(), rdb).Int())
}

// publishing makes a script that publishes twice, and ends with this text.
func publishing(end string) *script.Script {
	return script.New("publish(KEYS[1], ARGV[1])\npublish(KEYS[1], ARGV[2])\n" + end + " -- " + rand.Text())
}

// subscribe returns a function that waits for the next message on the channel.
func subscribe(t *testing.T, channel string) (next func() string) {
	t.Helper()
	sub := shared.Client(t).Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = sub.Close() })
	expect.Must(t, expect.Err(sub.Receive(t.Context())))
	return func() string {
		m, err := sub.ReceiveMessage(t.Context())
		expect.Must(t, err)
		return m.Payload
	}
}

func TestWhatAServerRefusesToPublishWithinAScriptItsProcessPublishes(t *testing.T) {
	t.Parallel()
	for name, rdb := range map[string]*redis.Client{"refused": redistest.WithoutPublish(shared.Client(t)), "published": shared.Client(t)} {
		for way, run := range map[string]func(c *script.Call) *redis.Cmd{
			"alone":      func(c *script.Call) *redis.Cmd { return c.Run(t.Context(), rdb) },
			"a pipeline": func(c *script.Call) *redis.Cmd { return script.RunAll(t.Context(), rdb, []*script.Call{c})[0] },
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				channel := rand.Text()
				next := subscribe(t, channel)
				replies(t, run(call(publishing("return {KEYS[1], ARGV[1]}"), channel, "a", "\x00b")), channel, "a")
				if got := []string{next(), next()}; !slices.Equal(got, []string{"a", "\x00b"}) {
					t.Errorf("it heard %q", got)
				}
				if got := run(call(publishing("return 7"), channel, "a", "b")); got.Err() != nil || got.Val() != int64(7) {
					t.Errorf("%v, %v; want 7", got.Val(), got.Err())
				}
				for _, end := range []string{"return nil", "return false", "KEYS[2] = 1"} {
					expect.ErrorIs(t, run(call(publishing(end), channel, "a", "b")).Err(), redis.Nil)
				}
				if err := run(call(publishing("return redis.error_reply('OUCH')"), channel, "a", "b")).Err(); !script.Says(err, "OUCH") {
					t.Errorf("%v; want the script's own error", err)
				}
			})
		}
	}
}

// A refused message costs one request more, and no other script any.
func TestOnlyARefusedMessageCostsACommandMore(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	silent := redistest.WithoutPublish(p.Client(t))
	run := func(rdb *redis.Client, s *script.Script) {
		expect.ErrorIs(t, call(s, rand.Text(), "a", "b").Run(context.Background(), rdb).Err())
	}
	run(rdb, publishing("return 1"))
	run(silent, unknown())
	expect.Equal(t, "messages", p.Commands()["publish"], 0)
	run(silent, publishing("return 1"))
	expect.Equal(t, "messages", p.Commands()["publish"], 2)
}
