package chaos

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cas"
	slots "github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/testing/redistest"
)

const (
	processes = 4
	scenarios = 6           // tests that last as long as CHAOS says, together
	round     = time.Minute // then all processes are replaced, and what they saw is checked
)

// duration is CHAOS, or short.
func duration() time.Duration {
	if long, err := time.ParseDuration(os.Getenv("CHAOS")); err == nil {
		return long / scenarios
	}
	return 8 * time.Second
}

// chaos is a run: processes, their Redis, and what happened to it.
type chaos struct {
	*testing.T
	env      []string
	ttl      time.Duration
	servers  []*redistest.Server // of the Redis that is disturbed
	clients  []*redis.Client     // of each of them
	proxies  []*redistest.Proxy  // one for each process, or none
	cluster  *redistest.Cluster  // nil: it is none
	pair     [2]*redistest.Server
	truth    *redistest.Server
	running  [processes]*redistest.Process
	logs     []string
	check    *checker
	harms    int
	expected bool // to break promises
	started  int  // processes
}

func newChaos(t *testing.T, servers []*redistest.Server, env ...string) *chaos {
	c := &chaos{T: t, servers: servers, truth: redistest.Start(t), check: newChecker(), ttl: time.Minute}
	for _, s := range servers {
		c.clients = append(c.clients, s.Client(t))
	}
	c.env = append(env, "TRUTH="+c.truth.Addr(), "GOMAXPROCS=1")
	if os.Getenv("CHAOS") != "" { // it shares its machine with others
		c.env = append(c.env, "THINK=20ms", "BULK=2000", "MOST=5000")
	} else {
		c.env = append(c.env, "BULK=200", "MOST=150")
	}
	return c
}

func onOneServer(t *testing.T, env ...string) *chaos {
	server := redistest.Start(t)
	return newChaos(t, []*redistest.Server{server}, append(env, "ADDRS="+server.Addr())...)
}

// onLongWay has a proxy between each process and its Redis.
func onLongWay(t *testing.T) *chaos {
	c := onOneServer(t)
	for range processes {
		c.proxies = append(c.proxies, redistest.StartProxy(t, c.servers[0].Addr()))
	}
	return c
}

func onSentinel(t *testing.T) *chaos {
	s := redistest.StartSentinel(t)
	c := newChaos(t, []*redistest.Server{s.Primary(), s.Replica()}, "ADDRS="+strings.Join(s.Addrs(), ","), "MASTER="+s.Name())
	c.pair = [2]*redistest.Server{s.Primary(), s.Replica()}
	return c.forgetful()
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
		c.forgetful()
	}
	return c
}

// forgetful makes entries live shortly, so that what a failover has forgotten does not live long.
func (c *chaos) forgetful() *chaos {
	c.ttl = 2 * time.Second
	c.env = append(c.env, "TTL="+c.ttl.String())
	return c
}

func (c *chaos) spawn(i int) {
	log := filepath.Join(c.TempDir(), rand.Text())
	c.logs = append(c.logs, log)
	env := append(c.env[:len(c.env):len(c.env)], "LOG="+log, fmt.Sprint("INDEX=", i))
	if c.proxies != nil {
		env = append(env, "ADDRS="+c.proxies[i].Addr())
	}
	c.running[i] = redistest.Child(c, "TestChildThatIsDisturbed", env...)
	c.started++
}

// rage does the harm by turns until the time is over, in rounds, and checks what the processes saw.
func (c *chaos) rage(all ...harm) {
	c.Helper()
	last := time.Now()
	for end := last.Add(duration()); !c.Failed() && (c.harms < len(all) || time.Now().Before(end)); {
		for i := range processes {
			c.spawn(i)
		}
		c.pause(time.Second)
		for enough := time.Now().Add(round); time.Now().Before(enough) && (c.harms < len(all) || time.Now().Before(end)); c.harms++ {
			c.suffer(all[c.harms%len(all)])
			c.pause(300 * time.Millisecond)
		}
		c.pause(time.Second)
		c.settle()
		if missing := c.missing(); len(missing) > 0 && c.harms < 10*len(all) { // each has a small share of what is done
			c.Logf("once more, as there was none yet: %q", missing)
			end = time.Now().Add(duration())
		}
	}
	c.verdict()
}

// missing is what never succeeded. Where Redis fails, some take long to.
func (c *chaos) missing() (missing []string) {
	for _, name := range names {
		if c.check.keeps && !c.check.observed[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

func (c *chaos) suffer(h harm) {
	from := now()
	h.do(c)
	if h.breaks {
		c.check.breaks = append(c.check.breaks, span{from, now() + int64(2*lease)})
	}
}

// settle lets the processes come to rest, and checks what they saw.
func (c *chaos) settle() {
	for _, p := range c.running {
		p.WriteLine("stop")
	}
	for _, p := range c.running {
		if err := p.Wait(); err != nil {
			c.Error(err)
		}
	}
	var history []event
	for _, log := range c.logs {
		history = append(history, readLog(c.T, log)...)
		if !c.Failed() {
			_ = os.Remove(log) // the test's directory goes, too
		}
	}
	c.logs = nil
	c.check.round(history)
	if !c.expected {
		c.explain(history)
	}
	c.counts(history)
	c.Logf("%s: %s; %d times harm, %d failovers, %d processes", time.Now().Format(time.TimeOnly), c.check.summary(), c.harms, len(c.check.forgets), c.started)
}

// explain logs what led to the first breach of each promise.
func (c *chaos) explain(history []event) {
	for promise, found := range c.check.found {
		seen, from := found[0].seen, found[0].seen.From
		scopes := seen.scopes()
		for _, w := range found[0].after {
			from = min(from, w.From)
		}
		var lines []string
		slices.SortFunc(history, func(a, b event) int { return cmp.Compare(a.From, b.From) })
		for _, e := range history {
			near := e.To > from-int64(2*time.Second) && e.From < seen.To+int64(time.Second)
			if near && (seen.N > 0 && e.N == seen.N || e.Key == seen.Key || slices.Contains(scopes, e.Scope) || e.Kind == starved) && len(lines) < 200 {
				lines = append(lines, fmt.Sprintf("%8dµs to %8dµs %+v", (e.From-from)/1000, (e.To-from)/1000, e))
			}
		}
		c.Logf("%s:\n%s", promise, strings.Join(lines, "\n"))
	}
}

// pause lets time pass while the processes work.
func (c *chaos) pause(d time.Duration) { <-time.After(d) }

func (c *chaos) client(i int) *redis.Client { return c.clients[i] }

// everywhere sends a command to all servers. If the command closes the connection, it has been sent.
func (c *chaos) everywhere(args ...any) {
	for i := range c.servers {
		_ = c.client(i).Do(context.Background(), args...).Err() // the next turn does it again
	}
}

func (c *chaos) slotOf(row string) int { return slots.Slot(slots.Tagged("chaos", row)) }

// counts compares what was counted with what the processes say, in all rounds so far.
func (c *chaos) counts(history []event) {
	for _, e := range history {
		if e.Kind == tries || e.Kind == adds {
			c.check.counts[e.Kind+" "+e.Key]++
		}
	}
	counted := func(row string) (tried, added int64) {
		return int64(c.check.counts[tries+" "+row]), int64(c.check.counts[adds+" "+row])
	}
	count, err := c.truth.Client(c).HGet(context.Background(), "counted under a lock", "value").Int64()
	if err != nil && !errors.Is(err, redis.Nil) { // nobody has had the lock yet
		c.Fatal(err)
	}
	tried, added := counted("lock")
	if miscounted("lock", tried, added, count) != nil {
		c.check.wrong(byLock, event{Kind: adds, N: count})
	}
	if !c.check.swaps {
		return
	}
	tried, added = counted("swap")
	if count = c.swapped(); miscounted("swap", tried, added, count) != nil {
		c.check.wrong(bySwap, event{Kind: adds, N: count})
	}
}

// swapped is the count by swap: of the library, and of those who do without.
func (c *chaos) swapped() int64 {
	store, err := cas.New(c.client(0), cas.Config{Prefix: "chaos-cas", TTL: -1})
	if err != nil {
		c.Fatal(err)
	}
	defer store.Close()
	count, _, err := cas.Get[int64](context.Background(), store, "count")
	without, err2 := c.client(0).Get(context.Background(), "wrong").Int64()
	if err != nil && !errors.Is(err, cas.ErrNotFound) || err2 != nil && !errors.Is(err2, redis.Nil) {
		c.Fatal(err, err2)
	}
	return count + without
}

// verdict fails the test for each promise that was broken, and where nothing happened.
func (c *chaos) verdict() {
	c.Helper()
	for promise, found := range c.check.found {
		c.Errorf("%s: %d times, the first: %+v", promise, len(found), found[0])
	}
	for _, name := range c.missing() {
		c.Errorf("%s never succeeded", name)
	}
}
