package cacheguard

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

func TestSelfCheckSucceedsWhereEverythingWorks(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{{}, withLocal} {
		f := newFleet(t, standalone(t), 1, cfg)
		for range 2 {
			equal(t, "SelfCheck", f.guards[0].SelfCheck(context.Background()), nil)
		}
		equal(t, "keys left", len(f.redis.Keys(context.Background(), f.guards[0].cfg.Prefix+"*").Val()), 0)
		_ = f.guards[0].Close()
		equal(t, "closed", f.guards[0].SelfCheck(context.Background()), ErrClosed)
	}
}

// selfCheckAs runs a SelfCheck as a user with the rights.
func selfCheckAs(t *testing.T, rights ...string) error {
	t.Helper()
	server := redistest.Start(t)
	admin := server.Client(t)
	args := []any{"acl", "setuser", "service", "on", ">secret", "~*", "+@all", "resetchannels"}
	for _, right := range rights {
		args = append(args, right)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := server.Client(t, func(o *redis.Options) { o.Username, o.Password = "service", "secret" })
	cfg := withLocal
	cfg.Prefix = "shop"
	g := newGuard(t, rdb, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return g.SelfCheck(ctx)
}

func TestSelfCheckSaysWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rights []string
		want   string // part of the error; none: nil
	}{
		"all it needs":        {[]string{"&cacheguard:inbox:*", "&shop:invalidated"}, ""},
		"no right to inboxes": {[]string{"&shop:invalidated"}, "subscribe"},
		"no right to notices": {[]string{"&cacheguard:inbox:*"}, "subscribe"},
		"no right to publish": {[]string{"&*", "-publish"}, "send a message"},
		"no right to run Lua": {[]string{"&*", "-evalsha", "-eval"}, "invalidate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := selfCheckAs(t, c.rights...)
			if c.want == "" {
				equal(t, "SelfCheck", err, nil)
			} else if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want word of %q", err, c.want)
			}
		})
	}
}

func TestSelfCheckEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, withLocal)
	f.listening()
	rule := proxy.On(redistest.Command("publish"), redistest.SwallowReply)
	defer rule.Remove()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.guards[0].SelfCheck(ctx) }()
	<-rule.Hit()
	cancel()
	if err := <-done; err == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestSelfCheckDoesNotTakeALostSubscriptionForAMessage(t *testing.T) {
	t.Parallel()
	f, proxy := broken(t, shared, Config{})
	f.listening()
	proxy.BlackHoleSubscribers(true)
	defer proxy.BlackHoleSubscribers(false)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.guards[0].SelfCheck(ctx) }()
	redistest.Await(t, "the loss to be seen", func() bool { return f.guards[0].inbox.Address() == "" })
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "did not arrive") {
		t.Errorf("%v", err)
	}
}
