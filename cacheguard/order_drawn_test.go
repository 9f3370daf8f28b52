package cacheguard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// ordering draws Caches of which some are made of others, a write that names all of them in their order, and what happens to it while somebody reads: in
// which order its requests reach the nodes of a cluster, which of them fail or lose their replies, or how far the intents are renewed when the writer dies.
type ordering struct {
	cluster *redistest.Cluster
	proxies map[string]*redistest.Proxy // before each node, for the writer
}

func newOrdering(t *testing.T) *ordering {
	o := &ordering{redistest.SharedCluster(t), make(map[string]*redistest.Proxy)}
	for _, node := range o.cluster.Addrs() {
		o.proxies[node] = redistest.StartProxy(t, node)
	}
	return o
}

func (o *ordering) writer(t *testing.T) client {
	return o.cluster.Client(t, func(opt *redis.ClusterOptions) {
		opt.ReadTimeout = bearing
		opt.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, o.proxies[addr].Addr())
		}
	})
}

// mistake is what a writer does wrong.
type mistake string

const (
	noMistake   mistake = "none"
	turnedRound mistake = "what is made of others ends first"
	noLonger    mistake = "intents of a later place stand no longer"
)

// oneOrder is a draw.
type oneOrder struct {
	*ordering
	t       *testing.T
	draw    *rand.Rand
	f       *fleet // the writer, and one who reads
	db      atomic.Pointer[string]
	names   []string
	sources [][]int // of what each is made; the first is read from the database
	ids     []int
	reads   []*Cache[int, string]
	places  []Changes
	cut     []*redistest.Rule // what keeps a writer that is dead from Redis
}

func (o *ordering) drawn(t *testing.T, draw *rand.Rand, wrong mistake) *oneOrder {
	rdb := o.cluster.Client(t, func(opt *redis.ClusterOptions) { opt.ReadTimeout = bearing })
	cfg := Config{RedisTimeout: bearing, LeaseTTL: time.Minute, WaitTimeout: time.Millisecond}
	d := &oneOrder{ordering: o, t: t, draw: draw, f: newFleetOn(t, rdb, cfg, o.writer(t), rdb)}
	d.write("old")
	d.names = []string{"a", "b", "c", "d"}[:2+draw.IntN(3)]
	level := make([]int, len(d.names))
	for i, name := range d.names {
		var sources []int
		for j := range i {
			if draw.IntN(3) > 0 || len(sources) == 0 && j == i-1 {
				sources, level[i] = append(sources, j), max(level[i], level[j]+1)
			}
		}
		d.sources, d.ids = append(d.sources, sources), append(d.ids, draw.IntN(1000))
		cfg := CacheConfig[int, string]{
			Name: name, Load: func(ctx context.Context, _ int) (string, error) { return d.made(ctx, sources) },
			Tags: func(int, string) []string { return []string{"tag " + name} },
		}
		must(NewCache(d.f.guards[0], cfg))
		d.reads = append(d.reads, must(NewCache(d.f.guards[1], cfg)))
		for len(d.places) <= level[i] {
			d.places = append(d.places, Changes{})
		}
		if p := &d.places[level[i]]; i == 0 || draw.IntN(4) > 0 {
			p.Keys = append(p.Keys, d.reads[i].Key(d.ids[i]))
		} else {
			p.Tags = append(p.Tags, "tag "+name)
		}
	}
	if wrong == turnedRound {
		slices.Reverse(d.places)
	}
	for i := range d.names {
		d.read(i)
	}
	d.f.stored()
	return d
}

func (d *oneOrder) write(v string) { d.db.Store(&v) }

// made makes a value of others, or of what the database has.
func (d *oneOrder) made(ctx context.Context, sources []int) (string, error) {
	var parts []string
	for _, j := range sources {
		part, err := d.reads[j].Get(ctx, d.ids[j])
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	if parts == nil {
		parts = []string{*d.db.Load()}
	}
	return strings.Join(parts, "+"), nil
}

func (d *oneOrder) read(i int) string {
	v, err := d.reads[i].Get(context.Background(), d.ids[i])
	expect.Equal(d.t, "error", err, nil)
	return v
}

func (d *oneOrder) readSome() {
	for range 1 + d.draw.IntN(3) {
		d.read(d.draw.IntN(len(d.names)))
	}
	d.f.stored()
}

// old is what of a draw is old at the end.
func (o *ordering) old(t *testing.T, draw *rand.Rand, wrong mistake) (old []string) {
	d := o.drawn(t, draw, wrong)
	defer func() {
		for _, g := range d.f.guards {
			_ = g.Close() // always nil
		}
		for _, rule := range d.cut {
			rule.Remove()
		}
	}()
	how := "dies"
	if draw.IntN(4) == 0 || wrong == noLonger {
		d.dies(wrong)
	} else {
		how = d.ends()
	}
	for i, name := range d.names {
		if v := d.read(i); strings.Contains(v, "old") {
			old = append(old, fmt.Sprintf("%s of %v is %s after a write of %q that %s", name, d.sources[i], v, d.places, how))
		}
	}
	return old
}

// ends makes the write, and returns once nothing of it is pending.
func (d *oneOrder) ends() (how string) {
	g, committed, returned := d.f.guards[0], make(chan struct{}), make(chan error, 1)
	interfere := d.holds
	if how = "is held up"; d.draw.IntN(3) == 0 {
		how, interfere = "fails", d.fails
	}
	var stop func(committed <-chan error) error
	commit := func() error {
		d.write("new")
		stop = interfere()
		close(committed)
		return nil
	}
	calls := map[int]func(ctx context.Context) error{
		0: func(ctx context.Context) error {
			in, err := g.Intend(ctx, d.places[0], d.places[1:]...)
			return errors.Join(err, commit(), in.Done(ctx))
		},
		1: func(ctx context.Context) error {
			return g.Update(ctx, d.reads[0].Key(d.ids[0]), func(ctx context.Context) error {
				return errors.Join(Also(ctx, d.places[0], d.places[1:]...), commit())
			})
		},
		2: func(ctx context.Context) error { // a call for each, which is repeated until it returns nil
			err := commit()
			for _, c := range d.places {
				for range 10 {
					if g.Invalidate(ctx, c.Keys...) == nil && g.InvalidateTags(ctx, c.Tags...) == nil {
						break
					}
				}
			}
			return err
		},
	}
	n := d.draw.IntN(len(calls))
	go func() { returned <- calls[n](context.Background()) }() // owner: the test; joined by stop
	<-committed
	err := stop(returned)
	if err != nil && how != "fails" {
		d.t.Errorf("a write that is only held up returned %v", err)
	}
	if err != nil && n == 0 && d.draw.IntN(2) == 0 {
		for _, proxy := range d.proxies {
			d.cut = append(d.cut, proxy.On(ofScripts, redistest.CutBefore))
		}
		d.expires()
		return "fails, and its writer dies"
	}
	redistest.Await(d.t, "nothing is pending", func() bool { return g.Stats().Pending == 0 })
	d.f.stored()
	return fmt.Sprint(how, " as call ", n)
}

// holds lets the writer's requests reach the nodes one by one, and somebody reads in between.
func (d *oneOrder) holds() (stop func(<-chan error) error) {
	held := make(map[string]*redistest.Rule)
	for node, proxy := range d.proxies {
		held[node] = proxy.On(ofScripts, redistest.Hold)
	}
	return func(returned <-chan error) error {
		for nodes := d.cluster.Addrs(); ; {
			node := nodes[d.draw.IntN(len(nodes))]
			let := held[node]
			held[node] = d.proxies[node].On(ofScripts, redistest.Hold)
			let.Remove()
			d.read(d.draw.IntN(len(d.names)))
			select {
			case err := <-returned:
				for _, hold := range held {
					hold.Remove()
				}
				d.f.stored()
				return err
			default:
			}
		}
	}
}

// fails has a node refuse some of the writer's requests, or lose them or their replies, while somebody reads.
func (d *oneOrder) fails() (stop func(<-chan error) error) {
	faults := []redistest.Fault{redistest.ReplyError("ERR not now"), redistest.DropReply, redistest.CutBefore}
	nodes := d.cluster.Addrs()
	rule := d.proxies[nodes[d.draw.IntN(len(nodes))]].On(ofScripts, faults[d.draw.IntN(len(faults))]).Times(1 + d.draw.IntN(4))
	return func(returned <-chan error) error {
		d.readSome()
		err := <-returned
		d.readSome()
		rule.Remove()
		return err
	}
}

// dies commits, and has the intents of the writer expire one by one: each node has renewed them as far as chance has it.
func (d *oneOrder) dies(wrong mistake) {
	in, err := d.f.guards[0].Intend(context.Background(), d.places[0], d.places[1:]...)
	expect.Equal(d.t, "error", err, nil)
	d.readSome()
	d.write("new")
	in.kept.Stop()
	term := d.f.guards[0].cfg.LeaseTTL.Milliseconds()
	d.eachIntent(func(member string, ends int64) int64 {
		ends += d.draw.Int64N(2 * term / 3)
		if wrong == noLonger {
			ends -= placeIn(member) * term
		}
		return ends
	})
	d.readSome()
	d.expires()
}

// expires lets the intents that stand end, one after the other.
func (d *oneOrder) expires() {
	for {
		now, next := time.Now().UnixMilli(), int64(0)
		d.eachIntent(func(_ string, ends int64) int64 {
			if ends > now && (next == 0 || ends < next) {
				next = ends
			}
			return ends
		})
		if next == 0 {
			d.f.stored()
			return
		}
		d.passes(next - now + 1)
		d.readSome()
	}
}

var inPlace = regexp.MustCompile(`(?:^| )(\d+):[A-Z2-7]{26} \d+ `)

// placeIn is the place that an intent is in.
func placeIn(member string) (place int64) {
	if found := inPlace.FindStringSubmatch(member); found != nil {
		place, _ = strconv.ParseInt(found[1], 10, 64) // digits
	}
	return place
}

// eachIntent calls f with each intent and when it ends, by the servers' clock in ms, and has it end when f says.
func (d *oneOrder) eachIntent(f func(member string, ends int64) int64) {
	ctx := context.Background()
	for _, key := range d.f.matching("*until*") {
		for _, z := range d.f.redis.ZRangeWithScores(ctx, key, 0, -1).Val() {
			if ends := f(z.Member.(string), int64(z.Score)); ends != int64(z.Score) {
				expect.Equal(d.t, "error", d.f.redis.ZAddXX(ctx, key, redis.Z{Member: z.Member, Score: float64(ends)}).Err(), nil)
			}
		}
	}
}

// passes lets so many ms pass for what has an end.
func (d *oneOrder) passes(ms int64) {
	ctx := context.Background()
	d.eachIntent(func(_ string, ends int64) int64 { return ends - ms })
	for _, key := range d.f.matching("*") {
		if left := d.f.redis.PTTL(ctx, key).Val(); left >= 0 {
			d.f.redis.PExpire(ctx, key, left-time.Duration(ms)*time.Millisecond)
		}
	}
}

func TestNoDrawnWriteInOrderLeavesAnOldValueOfWhatIsMadeOfOthers(t *testing.T) {
	t.Parallel()
	o := newOrdering(t)
	for seed := range uint64(expect.Samples(12, 60)) {
		if old := o.old(t, rand.New(rand.NewPCG(seed, 0)), noMistake); old != nil {
			t.Fatalf("seed %d: %q", seed, old)
		}
	}
}

func TestADrawnWriteWithAMistakeInItsOrderLeavesAnOldValue(t *testing.T) {
	t.Parallel()
	for _, wrong := range []mistake{turnedRound, noLonger} {
		expect.Beside(t, string(wrong), func(t *testing.T) {
			o := newOrdering(t)
			for seed := range uint64(200) {
				if o.old(t, rand.New(rand.NewPCG(seed, 0)), wrong) != nil {
					t.Logf("seed %d", seed)
					return
				}
			}
			t.Error("no draw has found it")
		})
	}
}
