package send

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// impatient makes WAIT end soon.
func impatient(o *redis.Options) { o.ReadTimeout = time.Second }

var del = script.New(`return redis.call('DEL', KEYS[1])`)

func deletions(keys ...string) (calls []*script.Call) {
	for _, key := range keys {
		calls = append(calls, &script.Call{Script: del, Keys: []string{key}})
	}
	return calls
}

// acknowledge runs the calls until one replica has what they wrote.
func (l *Link) acknowledge(ctx context.Context, calls []*script.Call) []Reply {
	return l.RunApart(ctx, calls, 1)
}

// pair is a primary and its replica, and a key that both have.
func pair(t *testing.T) (primary, replica *redistest.Server, rdb *redis.Client) {
	t.Helper()
	primary = redistest.Start(t)
	replica = redistest.StartReplica(t, primary)
	rdb = primary.Client(t)
	set(t, rdb, "{k}")
	return primary, replica, rdb
}

func set(t *testing.T, rdb redis.Cmdable, key string) {
	t.Helper()
	expect.Must(t, rdb.Set(t.Context(), key, "v", 0).Err())
}

func exists(t *testing.T, rdb redis.Cmdable, key string) int64 {
	t.Helper()
	n, err := rdb.Exists(t.Context(), key).Result()
	expect.Must(t, err)
	return n
}

func TestWhatIsAcknowledgedIsOnTheReplica(t *testing.T) {
	t.Parallel()
	_, replica, rdb := pair(t)
	cmds := newLink(t, rdb, patient).acknowledge(t.Context(), deletions("{k}"))
	n, err := cmds[0].Int()
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "removed", n, 1)
	expect.Equal(t, "there is a time before it was sent", cmds[0].Sent.IsZero(), false)
	expect.Equal(t, "the replica has it still", exists(t, replica.Client(t), "{k}"), 0)
}

// The second call finds nothing to remove. It must not count as acknowledged because of what its connection wrote before.
func TestASecondCopyThatWritesNothingIsNotAcknowledgedEither(t *testing.T) {
	t.Parallel()
	primary, replica, _ := pair(t)
	s := newLink(t, primary.Client(t, impatient), patient)
	primary.CutOff(replica)
	for call := range 2 {
		cmds := s.acknowledge(t.Context(), deletions("{k}"))
		expect.ErrorIs(t, cmds[0].Err(), ErrNotReplicated)
		expect.Equal(t, "the primary has it still", exists(t, primary.Client(t), "{k}"), 0)
		if call == 1 { // go-redis may have sent the first twice
			expect.Equal(t, "the second call has removed", cmds[0].Val(), any(int64(0)))
		}
		var e *NotReplicated
		if !errors.As(cmds[0].Err(), &e) || e.Want != 1 || e.Have != 0 {
			t.Errorf("%v", cmds[0].Err())
		}
	}
	replica.Resume()
	redistest.Await(t, "the replica acknowledges again", func() bool {
		cmds := s.acknowledge(t.Context(), deletions("{k}"))
		return cmds[0].Err() == nil
	})
	expect.Equal(t, "the replica has it still", exists(t, replica.Client(t), "{k}"), 0)
}

func TestAServerThatHasForgottenAScriptGetsItsSource(t *testing.T) {
	t.Parallel()
	primary, replica, rdb := pair(t)
	s := newLink(t, rdb, patient)
	for range 2 {
		set(t, rdb, "{k}")
		expect.Must(t, primary.Client(t).ScriptFlush(t.Context()).Err())
		cmds := s.acknowledge(t.Context(), deletions("{k}", "{other}"))
		expect.ErrorIs(t, errors.Join(cmds[0].Err(), cmds[1].Err()), nil)
		expect.Equal(t, "the replica has it still", exists(t, replica.Client(t), "{k}"), 0)
	}
}

func TestWhatIsRemovedIsAcknowledgedThoughMemoryIsFull(t *testing.T) {
	t.Parallel()
	_, _, rdb := pair(t)
	expect.Must(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	cmds := newLink(t, rdb, patient).acknowledge(t.Context(), deletions("{k}"))
	expect.ErrorIs(t, cmds[0].Err(), nil)
}

// While no replica answers, calls that gather do not take a connection each, and a call that its caller has left is not sent at all.
func TestWhileReplicasDoNotAnswerFewConnectionsWait(t *testing.T) {
	t.Parallel()
	primary, replica, rdb := pair(t)
	s := newLink(t, rdb, patient)
	primary.CutOff(replica)
	var callers sync.WaitGroup
	ctx, leave := context.WithCancel(t.Context())
	for i := range 100 {
		callers.Go(func() {
			cmds := s.acknowledge(ctx, deletions(fmt.Sprint("{left", i, "}")))
			expect.ErrorIs(t, cmds[0].Err(), context.Canceled)
		})
		redistest.Await(t, "it is on its way, or waits", func() bool {
			flying, waiting := s.apartAt(t)
			return flying == min(i+1, maxAcknowledged) && waiting == max(i+1-maxAcknowledged, 0)
		})
	}
	leave()
	callers.Wait()
	replica.Resume()
	redistest.Await(t, "nothing is under way", func() bool {
		flying, _ := s.apartAt(t)
		return flying == 0
	})
	expect.Equal(t, "deletions", primary.Commands()["del"], int64(maxAcknowledged))
}

// apartAt is how many parcels for one replica are in flight, and how many calls wait.
func (l *Link) apartAt(t *testing.T) (flying, waiting int) {
	t.Helper()
	lane, err := l.apart(t.Context(), Call{Script: &script.Call{Keys: []string{"{k}"}}, Replicas: 1})
	expect.Must(t, err)
	lane.mu.Lock()
	defer lane.mu.Unlock()
	return len(lane.flying), lane.queue.(*callQueue).n
}

func TestOnAClusterTheReplicasOfEachNodeCount(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 1)
	rdb := c.Client(t)
	s := newLink(t, rdb, patient)
	keys := []string{"{a}", "{b}", "{c}", "{d}", "{e}", "{f}"} // on all nodes
	for _, key := range keys {
		set(t, rdb, key)
	}
	cmds := s.acknowledge(t.Context(), deletions(keys...))
	nodes := make(map[*redis.Client]bool)
	for i, key := range keys {
		n, err := cmds[i].Int()
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "removed", n, 1)
		node, err := rdb.MasterForKey(t.Context(), key)
		expect.ErrorIs(t, err, nil)
		nodes[node] = true
	}
	expect.Equal(t, "nodes", len(nodes), 3)

	impatient := newLink(t, c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = time.Second }), patient)
	c.Node(0).CutOff(c.Node(3))
	defer c.Node(3).Resume()
	cmds = impatient.acknowledge(t.Context(), deletions(keys...))
	for i, key := range keys {
		if at := slotOf(t, rdb, key); at < 16384/3 {
			expect.ErrorIs(t, cmds[i].Err(), ErrNotReplicated)
		} else {
			expect.ErrorIs(t, cmds[i].Err(), nil)
		}
	}
}

func slotOf(t *testing.T, rdb *redis.ClusterClient, key string) int64 {
	t.Helper()
	slot, err := rdb.ClusterKeySlot(t.Context(), key).Result()
	expect.Must(t, err)
	return slot
}

func TestAClientWhoseNodesAreNotKnownIsRefused(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = rdb.Close() }) // it was never used
	expect.Fails(t, CheckReplicas(struct{ script.Pipeliner }{rdb}, 1))
	expect.ErrorIs(t, CheckReplicas(struct{ *redis.Client }{rdb}, 1), nil)
}

func TestWhatAParcelThatWaitsForReplicasMayNotPublishItsProcessPublishes(t *testing.T) {
	t.Parallel()
	primary, _, _ := pair(t)
	heard := primary.Client(t).Subscribe(t.Context(), "told")
	t.Cleanup(func() { _ = heard.Close() })
	_, err := heard.Receive(t.Context())
	expect.ErrorIs(t, err, nil)
	tells := script.New("redis.call('DEL', KEYS[1])\npublish('told', ARGV[1])\nreturn ARGV[1]")
	s := newLink(t, redistest.WithoutPublish(primary.Client(t)), patient)
	for _, word := range []string{"a", "b"} { // the script is unknown at first
		got, err := s.acknowledge(t.Context(), []*script.Call{{Script: tells, Keys: []string{"{k}"}, Args: []any{word}}})[0].Text()
		expect.Equal(t, "the script's own reply", got, word)
		expect.ErrorIs(t, err, nil)
		m, err := heard.ReceiveTimeout(t.Context(), redistest.Patience)
		expect.ErrorIs(t, err, nil)
		expect.Equal(t, "message", fmt.Sprint(m), fmt.Sprintf("Message<told: %s>", word))
	}
}
