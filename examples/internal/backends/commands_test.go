package backends

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/leaks"
)

func TestEachCommandIsCounted(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	server, err := Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var commands Commands
	client := server.NewCountedClient(&commands)
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	ping := func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() }
	_, err = client.Pipelined(t.Context(), ping) // pipelines have connections of their own, and opening one counts
	if err := errors.Join(err, client.Ping(t.Context()).Err()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		ask  func() error
		want int64
	}{
		{"a command", func() error { return client.Set(t.Context(), "k", "*1\r\n$4\r\nPING\r\n", 0).Err() }, 1},
		{"a large one", func() error { return client.Set(t.Context(), "k", strings.Repeat("*\r\n", 100_000), 0).Err() }, 1},
		{"a pipeline", func() error {
			_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				p.Get(t.Context(), "k")
				p.Set(t.Context(), "l", "", 0)
				return nil
			})
			return err
		}, 2},
		{"a script", func() error { return client.Eval(t.Context(), `return redis.call('GET', 'k')`, nil).Err() }, 1},
		{"through WithTimeout", func() error { return client.WithTimeout(time.Second).Get(t.Context(), "k").Err() }, 1},
	} {
		before := commands.Sent()
		if err := c.ask(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := commands.Sent() - before; got != c.want {
			t.Errorf("%s: counted %d, want %d", c.name, got, c.want)
		}
	}
}

func TestCommandsAreCountedHoweverTheyAreCutIntoPieces(t *testing.T) {
	t.Parallel()
	stream := strings.Repeat("*2\r\n$3\r\nGET\r\n$5\r\n*1\r\n$\r\n", 5)
	for size := 1; size <= len(stream); size++ {
		conn := &countedConn{commands: new(Commands)}
		for rest := []byte(stream); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			conn.scan(rest[:min(size, len(rest))])
		}
		if got := conn.commands.Sent(); got != 5 {
			t.Fatalf("in pieces of %d: counted %d, want 5", size, got)
		}
	}
}

// openRedis opens the Redis of the environment and a client of it, for one test.
func openRedis(t *testing.T) (*RedisServer, *redis.Client) {
	t.Helper()
	server, err := Redis(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := server.NewClient()
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return server, client
}

func TestTimePassesInTheEmbeddedRedis(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	server, client := openRedis(t)
	if server.String() != "embedded Redis" {
		t.Errorf("it calls itself %q", server)
	}
	if err := client.Set(t.Context(), "key", "value", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for {
		switch err := client.Get(t.Context(), "key").Err(); {
		case errors.Is(err, redis.Nil):
			return
		case err != nil:
			t.Fatal(err)
		}
	}
}

func TestAKeyWithoutTTLStaysInTheEmbeddedRedis(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	server, client := openRedis(t)
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.embedded.server.FastForward(time.Hour)
	if n, err := client.Exists(t.Context(), "key").Result(); n != 1 || err != nil {
		t.Errorf("EXISTS = %d, %v", n, err)
	}
}

func TestREDIS_URLNamesTheRedis(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	first, _ := openRedis(t)
	t.Setenv("REDIS_URL", "redis://"+first.options.Addr+"/3")
	second, client := openRedis(t)
	if second.String() != "Redis at "+first.options.Addr {
		t.Errorf("it calls itself %q", second)
	}
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if !first.embedded.server.DB(3).Exists("key") {
		t.Error("the key is not in database 3 of the Redis that REDIS_URL names")
	}
}

func TestDeleteRemovesTheKeysOfItsPrefixOnly(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	server, client := openRedis(t)
	if err := client.MSet(t.Context(), "mine:1", "", "mine:2", "", "yours:1", "").Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.Delete(t.Context(), "mine:"); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(server.embedded.server.Keys(), " "), "yours:1"; got != want {
		t.Errorf("keys left: %s, want %s", got, want)
	}
}

func TestABadREDIS_URLIsRefusedWithoutTellingItsPassword(t *testing.T) {
	for _, url := range []string{"redis://:se%zzcret@127.0.0.1:1", "tcp://:secret@127.0.0.1:1", "redis://:123/secret@127.0.0.1:1", "redis://:123?secret@127.0.0.1:1", "redis://:secret@127.0.0.1:1"} {
		t.Setenv("REDIS_URL", url)
		_, err := Redis(t.Context())
		if err == nil || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: error is %v", url, err)
		}
	}
}

func TestRedisGivesUpWithItsContext(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Redis(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want %v", err, context.Canceled)
	}
}

func TestMain(m *testing.M) { leaks.Main(m) }
