package wake_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// publish writes the frame as the scripts do.
var publish = redis.NewScript(`return redis.call('publish', ARGV[1], #ARGV[2] .. ':' .. ARGV[2] .. ARGV[3])`)

func send(t *testing.T, rdb redis.Scripter, address, key, body string) {
	t.Helper()
	expect.Must(t, publish.Run(t.Context(), rdb, []string{key}, address, key, body).Err())
}

// open opens the client's inbox until the test ends.
func open(t *testing.T, rdb wake.Redis) *wake.Inbox {
	t.Helper()
	in, release := wake.Open(rdb, "test")
	t.Cleanup(release)
	return in
}

// listening returns an inbox that is subscribed.
func listening(t *testing.T, rdb wake.Redis) *wake.Inbox {
	t.Helper()
	in := open(t, rdb)
	in.Start()
	awaitAddress(t, in)
	return in
}

func awaitAddress(t *testing.T, in *wake.Inbox) {
	t.Helper()
	redistest.Await(t, "the inbox has an address", func() bool { return in.Address() != "" })
}

func awaitNoAddress(t *testing.T, in *wake.Inbox) {
	t.Helper()
	redistest.Await(t, "the inbox has no address", func() bool { return in.Address() == "" })
}

func watch(t *testing.T, in *wake.Inbox, key string) *wake.Waiter {
	t.Helper()
	w := in.Watch(key)
	t.Cleanup(w.Stop)
	return w
}

func receives(t *testing.T, w *wake.Waiter, want wake.Message) {
	t.Helper()
	select {
	case got := <-w.C:
		expect.Equal(t, "message", got, want)
	case <-time.After(redistest.Patience):
		t.Fatalf("nothing came, want %+v", want)
	}
}

func expectNothing(t *testing.T, w *wake.Waiter) {
	t.Helper()
	select {
	case got := <-w.C:
		t.Errorf("got %+v, want nothing", got)
	default:
	}
}

// fence returns when the inbox has taken in all that was published before.
func fence(t *testing.T, in *wake.Inbox, rdb redis.Scripter) {
	t.Helper()
	w := in.Watch("the fence")
	defer w.Stop()
	send(t, rdb, in.Address(), "the fence", "")
	receives(t, w, wake.Message{})
}

var askAgain = wake.Message{AskAgain: true}

// drain takes what waits, so that what comes next is new.
func drain(w *wake.Waiter) {
	select {
	case <-w.C:
	default:
	}
}

func subscribers(t *testing.T, rdb *redis.Client, address string) int64 {
	t.Helper()
	n, err := rdb.PubSubNumSub(t.Context(), address).Result()
	expect.Must(t, err)
	return n[address]
}

// killSubscriptions has the server kill the connections of the clients with that name which have subscribed to something.
func killSubscriptions(t *testing.T, rdb *redis.Client, name string) (killed int) {
	t.Helper()
	clients, err := rdb.Do(t.Context(), "client", "list", "type", "pubsub").Text()
	expect.Must(t, err)
	for line := range strings.Lines(clients) {
		if strings.Contains(line, " name="+name+" ") {
			id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
			killed += int(rdb.ClientKillByFilter(t.Context(), "ID", id).Val())
		}
	}
	return killed
}

func awaitSubscriptions(t *testing.T, p *redistest.Proxy, n int) {
	t.Helper()
	redistest.Await(t, strconv.Itoa(n)+" subscriptions", func() bool { return p.Commands()["subscribe"] >= n })
}

func expectSubscriptions(t *testing.T, p *redistest.Proxy, want int) {
	t.Helper()
	expect.Equal(t, "SUBSCRIBE", p.Commands()["subscribe"], want)
}

// shared is for the tests that neither count nor break anything in the server itself.
var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
