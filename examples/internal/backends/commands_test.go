package backends

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
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
