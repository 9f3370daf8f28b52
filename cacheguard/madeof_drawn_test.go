package cacheguard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// drawing draws Caches of which some are made of others, calls that name all of them, and the order in which their requests reach the nodes of a cluster,
// while somebody reads.
type drawing struct {
	cluster *redistest.Cluster
	proxies map[string]*redistest.Proxy // before each node, for the writer
}

func newDrawing(t *testing.T) *drawing {
	d := &drawing{redistest.SharedCluster(t), make(map[string]*redistest.Proxy)}
	for _, node := range d.cluster.Addrs() {
		d.proxies[node] = redistest.StartProxy(t, node)
	}
	return d
}

func (d *drawing) writer(t *testing.T) client {
	return d.cluster.Client(t, func(o *redis.ClusterOptions) {
		o.ReadTimeout = bearing
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, d.proxies[addr].Addr())
		}
	})
}

// old is what of a draw is old after the call has returned; with planted, the writer does not know what is made of what.
func (d *drawing) old(t *testing.T, draw *rand.Rand, planted bool) (old []string) {
	rdb := d.cluster.Client(t)
	f := newFleetOn(t, rdb, Config{RedisTimeout: bearing}, d.writer(t), rdb)
	defer func() {
		for _, g := range f.guards {
			_ = g.Close() // always nil
		}
	}()
	var db atomic.Pointer[string]
	write := func(v string) { db.Store(&v) }
	write("old")
	names := []string{"a", "b", "c", "d"}[:2+draw.IntN(3)]
	sources := make([][]int, len(names)) // two to four of them, on up to three levels above the source
	ids := make([]int, len(names))
	var c Changes
	var reads []*Cache[int, string]
	for i, name := range names {
		var madeOf []string
		for j := range i {
			if draw.IntN(3) > 0 || len(sources[i]) == 0 && j == i-1 {
				sources[i], madeOf = append(sources[i], j), append(madeOf, names[j])
			}
		}
		ids[i] = draw.IntN(1000)
		load := func(ctx context.Context, _ int) (string, error) {
			parts := []string{}
			for _, j := range sources[i] {
				part, err := reads[j].Get(ctx, ids[j])
				if err != nil {
					return "", err
				}
				parts = append(parts, part)
			}
			if len(parts) == 0 {
				parts = []string{*db.Load()}
			}
			return strings.Join(parts, "+"), nil
		}
		cfg := CacheConfig[int, string]{Name: name, MadeOf: madeOf, Load: load, Tags: func(int, string) []string { return []string{"tag " + name} }}
		must(NewCache(f.guards[0], cfg))
		reads = append(reads, must(NewCache(f.guards[1], cfg)))
		if draw.IntN(4) > 0 {
			c.Keys = append(c.Keys, reads[i].Key(ids[i]))
		} else {
			c.Tags = append(c.Tags, "tag "+name)
		}
	}
	if planted {
		f.guards[0].kinds.made.levels.Store(nil)
	}
	read := func(i int) string {
		v, err := reads[i].Get(context.Background(), ids[i])
		expect.Equal(t, "error", err, nil)
		return v
	}
	for i := range names {
		read(i)
	}
	f.stored()
	var epochs []string
	for _, tag := range c.Tags {
		epochs = append(epochs, epoch.OfTag(tag))
	}
	end := func(ctx context.Context) error { return f.guards[0].writes.Invalidate(ctx, c.Keys, epochs) }
	if draw.IntN(2) == 0 {
		in, err := f.guards[0].Intend(context.Background(), c)
		expect.Equal(t, "error", err, nil)
		end = in.Done
	}
	write("new")
	holds := make(map[string]*redistest.Rule)
	for node, proxy := range d.proxies {
		holds[node] = proxy.On(ofScripts, redistest.Hold)
	}
	returned := make(chan error, 1)
	go func() { returned <- end(context.Background()) }() // owner: the test; joined below
	for nodes := d.cluster.Addrs(); ; {
		node := nodes[draw.IntN(len(nodes))]
		let := holds[node]
		holds[node] = d.proxies[node].On(ofScripts, redistest.Hold)
		let.Remove()
		read(draw.IntN(len(names)))
		select {
		case err := <-returned:
			expect.Equal(t, "the call's error", err, nil)
			for _, hold := range holds {
				hold.Remove()
			}
			f.stored()
			for i, name := range names {
				if v := read(i); strings.Contains(v, "old") {
					old = append(old, fmt.Sprintf("%s of %v is %s after a call for %q", name, sources[i], v, c))
				}
			}
			return old
		default:
		}
	}
}

func TestNoOrderDrawnOfTheEndsOfWhatIsMadeOfEachOtherLeavesAnOldValue(t *testing.T) {
	t.Parallel()
	d := newDrawing(t)
	for seed := range uint64(expect.Samples(20, 100)) {
		if old := d.old(t, rand.New(rand.NewPCG(seed, 0)), false); old != nil {
			t.Fatalf("seed %d: %q", seed, old)
		}
	}
}

func TestWithoutStagesADrawnOrderLeavesAnOldValue(t *testing.T) {
	t.Parallel()
	d := newDrawing(t)
	for seed := range uint64(200) {
		if d.old(t, rand.New(rand.NewPCG(seed, 0)), true) != nil {
			t.Logf("seed %d", seed)
			return
		}
	}
	t.Error("no draw has found it")
}
