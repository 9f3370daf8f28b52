package chaos

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // the name that Redis gives a script
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// revocation is a run of processes that invalidate, and of others that read from their tiers.
type revocation struct {
	*testing.T
	ledger       *ledger
	env          []string
	mistaken     bool // it is to be found wrong
	server       *redistest.Server
	servers      []*redistest.Server // under Sentinel
	sentinel     *redis.SentinelClient
	master       string // its name for them
	cluster      *redistest.Cluster
	nodes        []*redis.Client  // of the cluster
	roads        []*road          // of the readers, or none
	fatal        *redistest.Proxy // of the invalidator that dies, or none
	readers      [readers]*redistest.Process
	invalidators [invalidators]*redistest.Process
	bad          map[string]*toll

	deaths, failovers int
}

// toll is what is known of a kind of trouble.
type toll struct {
	times                     int
	invalidated, local, wrong int64
	oldest                    time.Duration
}

func newRevocation(t *testing.T, env ...string) *revocation {
	path := filepath.Join(t.TempDir(), "ledger")
	return &revocation{T: t, ledger: openLedger(t, path), env: append(env, "LEDGER="+path, "GOMAXPROCS=1"), bad: make(map[string]*toll)}
}

// onRoads is one server, with a road for each reader.
func onRoads(t *testing.T, env ...string) *revocation {
	server := redistest.Start(t)
	r := newRevocation(t, append(env, "ADDRS="+server.Addr())...)
	r.server, r.fatal = server, redistest.StartProxy(t, server.Addr())
	for range readers {
		r.roads = append(r.roads, buildRoad(t, server.Addr()))
	}
	return r
}

// underSentinel has a primary and three replicas, all of which must have what is invalidated: the sentinel may promote the one that has the
// least, as it knows what each has had seconds ago.
func underSentinel(t *testing.T) *revocation {
	s := redistest.StartSentinel(t)
	servers := []*redistest.Server{s.Primary(), s.Replica(), redistest.StartReplica(t, s.Primary()), redistest.StartReplica(t, s.Primary())}
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs()[0]})
	t.Cleanup(func() { _ = sentinel.Close() })
	if err := sentinel.Set(t.Context(), s.Name(), "down-after-milliseconds", "3000").Err(); err != nil { // a busy machine is not down
		t.Fatal(err)
	}
	redistest.Await(t, "the sentinel knows all replicas", func() bool {
		known, err := sentinel.Replicas(t.Context(), s.Name()).Result()
		return err == nil && len(known) == len(servers)-1
	})
	r := newRevocation(t, "ADDRS="+s.Addrs()[0], "MASTER="+s.Name(), fmt.Sprint("REPLICAS=", len(servers)-1))
	r.servers, r.sentinel, r.master = servers, sentinel, s.Name()
	return r
}

// onBus is a cluster, whose bus may lose notices: then repeated numbers are the bound.
func onBus(t *testing.T, env ...string) *revocation {
	cluster := redistest.StartCluster(t, 0)
	r := newRevocation(t, append([]string{"ADDRS=" + strings.Join(cluster.Addrs(), ","), "CLUSTER=yes", "BOUND=8s"}, env...)...)
	r.cluster = cluster
	for i := range cluster.Addrs() {
		rdb := cluster.Node(i).Client(t)
		for name, value := range map[string]string{
			"cluster-require-full-coverage": "no",    // a node that stands still concerns its own keys
			"cluster-node-timeout":          "15000", // the default: a busy machine is not down
		} {
			if err := rdb.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		r.nodes = append(r.nodes, rdb)
	}
	return r
}

func (r *revocation) start(role string, i int, addr string) *redistest.Process {
	lag := []time.Duration{time.Second, 300 * time.Millisecond}[i%2]
	if r.mistaken { // tiers have to serve on a busy machine, too; what they have not heard they serve for up to 4 s
		lag = 2 * time.Second
	}
	env := append(slices.Clone(r.env), "ROLE="+role, fmt.Sprint("PLACE=", i), fmt.Sprint("LAG=", lag))
	if addr != "" {
		env = append(env, "ADDRS="+addr)
	}
	return redistest.Child(r, "TestChildThatReadsOrRevokes", env...)
}

func (r *revocation) read(i int) {
	addr := ""
	if r.roads != nil {
		addr = r.roads[i].listener.Addr().String()
	}
	r.readers[i] = r.start("reader", i, addr)
}

func (r *revocation) revoke(i int) {
	addr := ""
	if i == 0 && r.fatal != nil {
		addr = r.fatal.Addr()
	}
	r.invalidators[i] = r.start("invalidator", i, addr)
}

// rage does all the harm by turns, until the time is over, or there is enough of what a mistake is to show.
func (r *revocation) rage(all ...trouble) {
	r.Helper()
	for i := range readers {
		r.read(i)
	}
	for i := range invalidators {
		r.revoke(i)
	}
	redistest.Await(r, "tiers serve, and somebody invalidates", func() bool {
		return sum(r.ledger.gets[:]) > 1000 && sum(r.ledger.invalidated[:]) > 0
	})
	began, reported := time.Now(), time.Now()
	goesOn := func() bool {
		if r.lacks() { // what a mistake needs comes together by chance, and seldom on a busy machine
			return time.Since(began) < max(lasting(), 4*redistest.Patience)
		}
		return !r.mistaken && time.Since(began) < lasting()
	}
	for n := 0; !r.Failed() && (n < len(all) || goesOn()); n++ {
		r.suffer(all[n%len(all)])
		if time.Since(reported) > round {
			reported = time.Now()
			r.report()
		}
	}
	r.ledger.stop.Store(true)
	for _, p := range append(r.readers[:], r.invalidators[:]...) {
		if err := p.Wait(); err != nil {
			r.Error(err)
		}
	}
	r.report()
	r.verdict()
}

// lasting is how long each test lasts, if that is enough for all kinds of trouble.
func lasting() time.Duration {
	if long, err := time.ParseDuration(os.Getenv("REVOKING")); err == nil {
		return long
	}
	return duration()
}

func (r *revocation) suffer(what trouble) {
	t := r.bad[what.name]
	if t == nil {
		t = new(toll)
		r.bad[what.name] = t
	}
	l := r.ledger
	for i := range l.oldest {
		l.oldest[i].Store(0)
	}
	invalidated, local, wrong := sum(l.invalidated[:]), sum(l.local[:]), sum(l.wrong[:])
	what.do(r)
	r.pause(1500 * time.Millisecond) // what it has done shows
	for i := range l.oldest {
		t.oldest = max(t.oldest, time.Duration(l.oldest[i].Load()))
	}
	t.times++
	t.invalidated += sum(l.invalidated[:]) - invalidated
	t.local += sum(l.local[:]) - local
	t.wrong += sum(l.wrong[:]) - wrong
}

func (r *revocation) report() {
	l := r.ledger
	var text strings.Builder
	fmt.Fprintf(&text, "%d invalidations of keys, %d more failed; %d answers, %d of them from tiers; %d wrong, %d excused; %d deaths after a script, %d failovers",
		sum(l.invalidated[:]), sum(l.failed[:]), sum(l.gets[:]), sum(l.local[:]), sum(l.wrong[:]), sum(l.excused[:]), r.deaths, r.failovers)
	names := make([]string, 0, len(r.bad))
	for name := range r.bad {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(a, b) })
	for _, name := range names {
		t := r.bad[name]
		fmt.Fprintf(&text, "\n| %s | %d | %d | %d | %v | %d |", name, t.times, t.invalidated, t.local, t.oldest.Round(time.Millisecond), t.wrong)
	}
	r.Log(text.String())
}

// lacks reports whether a run has not shown yet what it is for.
func (r *revocation) lacks() bool {
	if r.mistaken {
		return sum(r.ledger.wrong[:]) == 0
	}
	return r.tierServes() && sum(r.ledger.local[:]) == 0
}

func (r *revocation) verdict() {
	r.Helper()
	wrong := sum(r.ledger.wrong[:])
	switch {
	case r.mistaken && wrong == 0:
		r.Error("nothing was wrong")
	case r.mistaken:
	case wrong > 0:
		r.Errorf("%d answers were too old", wrong)
	case r.lacks():
		r.Error("no tier has answered")
	}
}

// tierServes reports whether a tier may: where scripts may not publish, none does.
func (r *revocation) tierServes() bool { return !slices.Contains(r.env, "REFUSING=yes") }

// plainEchoes is the mistake of an echo that is published without a script. It comes back where notices do not.
type plainEchoes struct{ rdb redis.UniversalClient }

var echoes sync.Map // hashes of their script

func (plainEchoes) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p plainEchoes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if p.published(ctx, cmd) {
			return nil
		}
		return next(ctx, cmd)
	}
}

func (p plainEchoes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		rest := slices.DeleteFunc(slices.Clone(cmds), func(cmd redis.Cmder) bool { return p.published(ctx, cmd) })
		if len(rest) == 0 {
			return nil
		}
		return next(ctx, rest)
	}
}

// unnumbered is the mistake of notices that nobody misses: each has a source of its own, and none is repeated.
type unnumbered struct{}

func (unnumbered) DialHook(next redis.DialHook) redis.DialHook { return next }

func (u unnumbered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		u.edit(cmd)
		return next(ctx, cmd)
	}
}

func (u unnumbered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			u.edit(cmd)
		}
		return next(ctx, cmds)
	}
}

func (unnumbered) edit(cmd redis.Cmder) {
	args := cmd.Args()
	for i := range args {
		text, _ := args[i].(string)
		if n, is := tier.ParseNotice(text); is {
			n.Source, n.Number = fmt.Sprint(n.Source, "-", n.Number), 1
			args[i] = n.String()
		} else if tier.IsRepetition(text) {
			args[i] = ""
		}
	}
}

// published publishes an echo, if that is what the command is for.
func (p plainEchoes) published(ctx context.Context, cmd redis.Cmder) bool {
	args := cmd.Args()
	if len(args) != 6 {
		return false
	}
	text, _ := args[1].(string)
	if strings.Contains(text, "Publishes an echo") {
		sum := sha1.Sum([]byte(text)) //nolint:gosec // as above
		echoes.Store(hex.EncodeToString(sum[:]), true)
	} else if _, is := echoes.Load(text); !is {
		return false
	}
	reply, is := cmd.(interface{ SetVal(val any) })
	if !is {
		return false
	}
	n, err := p.rdb.Publish(ctx, args[4].(string), args[5]).Result()
	cmd.SetErr(err)
	reply.SetVal(n)
	return true
}
