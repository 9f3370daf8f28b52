package cacheguard

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A password that was changed shows when a connection is made, which may be long after it was. go-redis tells it the pipeline, and no command.
func TestEveryChangeSaysThatRedisRefusesItsConnection(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	user := []any{"acl", "setuser", "service", "on", ">secret", "~*", "&*", "+@all", "-select"} // as the line of docs/redis.md, for database 0
	expect.Equal(t, "acl", server.Client(t).Do(t.Context(), user...).Err(), nil)
	for refused, o := range map[string]redis.Options{
		"a changed password": {Username: "service", Password: "before"},
		"no right to SELECT": {Username: "service", Password: "secret", DB: 5},
		"no such database":   {DB: 1 << 20},
	} {
		for name, change := range changes {
			t.Run(name+", "+refused, func(t *testing.T) {
				t.Parallel()
				o := o // the client writes its defaults into what it is given
				o.Addr = server.Addr()
				rdb := redis.NewClient(&o)
				t.Cleanup(func() { _ = rdb.Close() })
				f, db := newFleetOn(t, server.Client(t), Config{}, rdb), newRow("old")
				err := change.run(context.Background(), rows(t, f, db)[0], db, "new")
				var of *RedisError
				if !errors.As(err, &of) {
					t.Fatalf("%v, want a *RedisError", err)
				}
				written, pending := db.value.Load() == "new", f.guards[0].Stats().Pending > 0
				expect.Equal(t, "it was written, and is pending", written, pending)
				expect.Equal(t, "it began", of.begins(), !written)
			})
		}
	}
}

// So do the calls that only ask.
func TestWhatAsksForManySaysThatRedisRefusesItsConnection(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: shared.Addr(), Username: "nobody", Password: "x"})
	t.Cleanup(func() { _ = rdb.Close() })
	f := newFleetOn(t, shared.Client(t), Config{FailClosed: true}, rdb)
	g := f.guards[0]
	for name, ask := range map[string]func() error{
		"UpdateMany": func() error {
			return g.UpdateMany(context.Background(), []string{"a", "b"}, func(context.Context) error { return nil })
		},
		"Inspect": func() error { _, err := g.Inspect(context.Background(), "a"); return err },
		"GetMany": func() error {
			_, err := GetMany(context.Background(), g, []string{"a", "b"}, func(context.Context, []string) (map[string]string, error) { return nil, nil })
			return err
		},
	} {
		err := ask()
		if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
			t.Errorf("%s: %v, want word of WRONGPASS", name, err)
		}
	}
}
