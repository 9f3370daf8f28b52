package chaos

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/cas"
	slots "github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const processes = 4

// duration is CHAOS, or short.
func duration() time.Duration {
	if long, err := time.ParseDuration(os.Getenv("CHAOS")); err == nil {
		return long
	}
	return 10 * time.Second
}

// chaos is a run: processes, their Redis, and what happened to it.
type chaos struct {
	*testing.T
	env       []string
	servers   []*redistest.Server  // of the Redis that is disturbed
	cluster   *redistest.Cluster   // nil: it is none
	pair      [2]*redistest.Server // a primary and its replica
	truth     *redistest.Server
	running   [processes]*redistest.Process
	logs      []string
	failovers []span
	done      int // harm
}

func newChaos(t *testing.T, servers []*redistest.Server, env ...string) *chaos {
	c := &chaos{T: t, servers: servers, truth: redistest.Start(t)}
	c.env = append(env, "TRUTH="+c.truth.Addr())
	return c
}

func onOneServer(t *testing.T, env ...string) *chaos {
	server := redistest.Start(t)
	return newChaos(t, []*redistest.Server{server}, append(env, "ADDRS="+server.Addr())...)
}

func onSentinel(t *testing.T) *chaos {
	s := redistest.StartSentinel(t)
	c := newChaos(t, []*redistest.Server{s.Primary(), s.Replica()}, "ADDRS="+strings.Join(s.Addrs(), ","), "MASTER="+s.Name())
	c.pair = [2]*redistest.Server{s.Primary(), s.Replica()}
	return c
}

func onCluster(t *testing.T, replicas int) *chaos {
	cluster := redistest.StartCluster(t, replicas)
	var servers []*redistest.Server
	for i := range cluster.Addrs() {
		servers = append(servers, cluster.Node(i))
	}
	c := newChaos(t, servers, "ADDRS="+strings.Join(cluster.Addrs(), ","), "CLUSTER=yes")
	c.cluster = cluster
	if replicas > 0 {
		c.pair = [2]*redistest.Server{cluster.Node(0), cluster.Node(3)}
	}
	return c
}

func (c *chaos) spawn(i int) {
	log := filepath.Join(c.TempDir(), rand.Text())
	c.logs = append(c.logs, log)
	c.running[i] = redistest.Child(c, "TestChildThatIsDisturbed", append(c.env, "LOG="+log)...)
}

// rage does the harm by turns until the time is over, lets the processes come to rest, and returns what they saw.
func (c *chaos) rage(all ...harm) (history []event) {
	for i := range processes {
		c.spawn(i)
	}
	c.pause(time.Second)
	for end := time.Now().Add(duration()); time.Now().Before(end) || c.done < len(all); c.done++ {
		all[c.done%len(all)](c)
		c.pause(300 * time.Millisecond)
	}
	c.pause(time.Second)
	for _, p := range c.running {
		p.WriteLine("stop")
	}
	for _, p := range c.running {
		if err := p.Wait(); err != nil {
			c.Error(err)
		}
	}
	for _, log := range c.logs {
		history = append(history, readLog(c.T, log)...)
	}
	return history
}

// pause lets time pass in which the processes work.
func (c *chaos) pause(d time.Duration) { <-time.After(d) }

// everywhere sends a command to all servers. If the command closes the connection, it has been sent.
func (c *chaos) everywhere(args ...any) {
	for _, s := range c.servers {
		_ = s.Client(c).Do(context.Background(), args...).Err() // the next turn does it again
	}
}

func (c *chaos) slotOf(row string) int { return slots.Slot(slots.Tagged("chaos", row)) }

// verdict says what is wrong with a history, by promise.
func (c *chaos) verdict(history []event) (wrong map[string]error) {
	wrong = make(map[string]error)
	found, excused := stale(history, c.failovers)
	if len(found) > 0 {
		wrong["stale"] = fmt.Errorf("%d stale reads, the first: %+v", len(found), found[0])
	}
	count, err := c.truth.Client(c).HGet(context.Background(), "counted under a lock", "value").Int64()
	if err != nil {
		c.Fatal(err)
	}
	wrong["lock"] = miscounted(history, "lock", count)
	c.Logf("%d gets, %d stale, %d excused by %d failovers; %d writes; %d of %d counted under a lock, %d of %d by swap; %d times harm, %d processes",
		len(only(history, "get", "")), len(found), excused, len(c.failovers), len(only(history, "wrote", "")),
		len(only(history, "adds", "lock")), len(only(history, "tries", "lock")),
		len(only(history, "adds", "swap")), len(only(history, "tries", "swap")), c.done, len(c.logs))
	for _, kind := range []string{"get", "wrote", "adds"} {
		if len(only(history, kind, "")) == 0 {
			c.Errorf("nothing happened: no %s", kind)
		}
	}
	return wrong
}

// swapped is the count by swap, where Redis has kept its data.
func (c *chaos) swapped() int64 {
	store, err := cas.New(c.servers[0].Client(c), cas.Config{Prefix: "chaos-cas", TTL: -1})
	if err != nil {
		c.Fatal(err)
	}
	defer store.Close()
	count, _, err := cas.Get[int64](context.Background(), store, "count")
	if err != nil {
		c.Fatal(err)
	}
	return count
}

func (c *chaos) expectNothingWrong(wrong map[string]error) {
	for promise, err := range wrong {
		if err != nil {
			c.Errorf("%s: %v", promise, err)
		}
	}
}

func TestPromisesHoldWhileProcessesDieAndConnectionsBreak(t *testing.T) {
	t.Parallel()
	c := onOneServer(t)
	history := c.rage(killOne, forgetScripts, stopMost, closeConnections)
	wrong := c.verdict(history)
	wrong["swap"] = miscounted(history, "swap", c.swapped())
	c.expectNothingWrong(wrong)
}

func TestPromisesHoldWhileRedisLosesItsData(t *testing.T) {
	t.Parallel()
	c := onOneServer(t)
	c.expectNothingWrong(c.verdict(c.rage(restart, killOne, evict, stopMost, fill)))
}

func TestPromisesHoldWhileAClusterMovesItsSlots(t *testing.T) {
	t.Parallel()
	c := onCluster(t, 0)
	c.expectNothingWrong(c.verdict(c.rage(moveSlots, killOne, moveSlots, forgetScripts, moveSlots, closeConnections)))
}

func TestPromisesHoldBesideFailovers(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(t *testing.T) *chaos{
		"sentinel": onSentinel,
		"cluster":  func(t *testing.T) *chaos { return onCluster(t, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := build(t)
			c.expectNothingWrong(c.verdict(c.rage(killOne, failOver, forgetScripts)))
		})
	}
}

func TestTheUsualMistakesAreFound(t *testing.T) {
	t.Parallel()
	c := onOneServer(t, "WRONG=yes")
	history := c.rage(stopMost, killOne, stopMost, forgetScripts)
	wrong := c.verdict(history)
	count, err := c.servers[0].Client(t).Get(t.Context(), "wrong").Int64()
	if err != nil {
		t.Fatal(err)
	}
	wrong["swap"] = miscounted(history, "swap", count)
	for _, promise := range []string{"stale", "lock", "swap"} {
		if wrong[promise] == nil {
			t.Errorf("%s: nothing was found, so the other tests prove nothing", promise)
		}
	}
}
