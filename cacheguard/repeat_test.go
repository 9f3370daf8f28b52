package cacheguard

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// subscribedTo is the node that the inbox of a guard is subscribed to.
func (f *fleet) subscribedTo(c *redistest.Cluster, i int) *redistest.Server {
	f.t.Helper()
	for n := range 3 {
		channel := f.guards[i].notices.Channel
		heard, err := c.Node(n).Client(f.t).PubSubNumSub(context.Background(), channel).Result()
		expect.Must(f.t, err)
		if heard[channel] > 0 {
			return c.Node(n)
		}
	}
	f.t.Fatal("no node has the subscription")
	return nil
}

// A node that stands still is cut off by the others, which lose what they had to say to it. Its subscribers' connections stay.
func TestANoticeThatIsLostOnAClustersBusIsMissedWithinSeconds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := redistest.StartCluster(t, 0)
	for n := range 3 {
		expect.Must(t, c.Node(n).Client(t).ConfigSet(ctx, "cluster-node-timeout", "1000").Err())
	}
	rdb := c.Client(t)
	cfg := Config{TTL: time.Hour, Local: LocalConfig{MaxEntries: 1000, TTL: time.Hour}, RedisTimeout: bearing}
	f := newFleetOn(t, rdb, cfg, rdb)
	f.guards = append(f.guards, newGuard(t, c.Client(t), Config{Prefix: f.guards[0].cfg.Prefix, RedisTimeout: cfg.RedisTimeout}))
	f.listening()
	frozen := f.subscribedTo(c, 0)
	id, err := frozen.Client(t).ClusterMyID(ctx).Result()
	expect.Equal(t, "error", err, nil)
	key, writing := f.keyElsewhere(rdb, frozen)
	f.keptBy(0, key, "old")

	frozen.Pause()
	cut, err := redistest.CutBus(ctx, writing, id)
	redistest.Await(t, "it is invalidated", func() bool { return f.guards[1].Invalidate(ctx, key) == nil }) // others may be late, too, and the cluster down
	pause(1500 * time.Millisecond)
	frozen.Resume()
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "cut off", cut, true)
	redistest.Await(t, "the new value", func() bool {
		v, _, err := get(ctx, f.guards[0], key, returns("new"))
		return err == nil && v == "new"
	})
}

// keyElsewhere is a key of another node, and a client of that node.
func (f *fleet) keyElsewhere(rdb *redis.ClusterClient, frozen *redistest.Server) (string, *redis.Client) {
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i)
		node, err := rdb.MasterForKey(context.Background(), f.guards[0].keys.ValueKey(key))
		expect.Must(f.t, err)
		if node.Options().Addr != frozen.Addr() {
			return key, node
		}
	}
}

func TestANoticeThatIsLostOnOneServerIsMissedWithinSeconds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	admin := server.Client(t)
	expect.Equal(t, "error", admin.Do(ctx, "acl", "setuser", "app", "on", ">secret", "~*", "+@all", "resetchannels").Err(), nil)
	f := newFleetOn(t, admin, Config{TTL: time.Hour, Local: withLocal.Local}, server.Client(t)) // nothing else ends the entry
	f.keptBy(0, "k", "old")
	cfg, text := logged()
	cfg.Prefix = f.guards[0].cfg.Prefix
	mute := newGuard(t, server.Client(t, redistest.User("app", "secret")), cfg)
	mustInvalidate(t, mute, "k") // its notice is refused, to the process as well; Redis has forgotten the key
	redistest.Await(t, "the notice is refused", func() bool { return mute.Stats().Of("refused_messages") == 1 })
	redistest.Await(t, "the log says so", func() bool { return len(lines(text(), "messages refused")) == 1 })
	expect.Equal(t, "since when", mute.Stats().Of("refused_messages_age_seconds") > 0, true)
	expect.Equal(t, "invalidations", fmt.Sprint(mute.Stats().Pending, mute.Stats().PendingFor), "0 0s")
	expect.Equal(t, "invalidations that are pending", len(lines(text(), "invalidations pending")), 0)
	expect.Equal(t, "read anew", mustGet(t, mute, "k", returns("new")), "new")
	_, how, err := get(ctx, f.guards[0], "k", unwanted[string](t))
	expect.Equal(t, "what the tier cannot know of", fmt.Sprint(how, ", ", err), "local, <nil>")
	expect.Equal(t, "error", admin.Do(ctx, "acl", "setuser", "app", "allchannels").Err(), nil)
	redistest.Await(t, "the new value", func() bool {
		v, _, err := get(ctx, f.guards[0], "k", returns("new"))
		return err == nil && v == "new"
	})
	redistest.Await(t, "nothing is refused", func() bool {
		return mute.Stats().Of("refused_messages") == 0 && mute.Stats().Of("refused_messages_age_seconds") == 0
	})
}

// A tier that is dropped each second has no hits, though the subscription stands whenever somebody looks.
func TestATierThatIsDroppedAgainAndAgainIsATroubleForAllWhoAreTold(t *testing.T) {
	t.Parallel()
	expect.Each(t, map[string]func(t *testing.T, s *redistest.Server, g *Guard, n int){
		"the subscription is cut": func(t *testing.T, s *redistest.Server, g *Guard, _ int) {
			t.Helper()
			redistest.Await(t, "it stands", g.inbox.Live)
			expect.ErrorIs(t, s.Client(t).Do(t.Context(), "client", "kill", "type", "pubsub").Err())
		},
		"every other message is lost": func(t *testing.T, s *redistest.Server, g *Guard, n int) {
			t.Helper()
			redistest.Await(t, "it stands", g.inbox.Live)
			expect.ErrorIs(t, s.Client(t).Publish(t.Context(), g.notices.Channel, "other/0 "+strconv.Itoa(2*n)+" k").Err())
		},
	}, func(t *testing.T, _ string, lose func(t *testing.T, s *redistest.Server, g *Guard, n int)) {
		s := redistest.Start(t)
		cfg, log := logged()
		cfg.Prefix, cfg.Local = "shop", LocalConfig{MaxEntries: 10}
		g := newGuard(t, s.Client(t), cfg)
		mustGet(t, g, "k", returns("v"))
		lost := 0
		redistest.Await(t, "the log says so", func() bool {
			lost++
			lose(t, s, g, lost)
			_, _, _ = get(t.Context(), g, "k", returns("v")) // which gives up what is missing
			return len(lines(log(), "messages may have been missed again and again, the local tier is dropped")) == 1
		})
		expect.Equal(t, "on the page", g.observed().Troubles().Last["missed"] > 0, true)
		expect.Equal(t, "Stats", g.Stats().Subscribed, false)
		redistest.Await(t, "the log says that it is over", func() bool {
			return len(lines(log(), "messages arrive steadily again")) == 1
		})
		expect.Equal(t, "Stats", g.Stats().Subscribed, true)
	})
}
