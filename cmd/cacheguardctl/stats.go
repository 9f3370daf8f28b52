package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// stats shows what Redis counts, and instances.
type stats struct {
	Page []string `env:"CACHEGUARD_PAGES" help:"URLs of the page of package admin on instances: shows what each of them loads and warms." placeholder:"URL"`
}

// instanceStats is what the page of an instance has counted for a Guard, so far.
type instanceStats struct {
	Instance        string `json:"instance"`
	Loading         int    `json:"loading"`
	Queued          int    `json:"queued"`
	BreakersOpen    int    `json:"breakers_open"`
	Warming         int    `json:"warming"`
	FailedRefreshes uint64 `json:"failed_refreshes"`

	HitRatio float64 `json:"hit_ratio"` // of Gets, since its page is there; -1: nobody asked

	Numbers map[string]float64 `json:"numbers,omitempty"` // all that there are
	helps   []pagedNumber      // the same, in their order
}

// counted are the answers that a hit ratio is of; the first ones are hits.
var counted = []string{"hit", "local", "stale", "negative", "loaded", "shared", "bypassed", "error"}

const hits = 4 // of counted

// hitRatio counts all caches together; -1: nobody asked.
func (g *pagedGuard) hitRatio() float64 {
	var served, all float64
	for _, c := range g.Caches {
		for i, name := range counted {
			all += float64(c.Answers[name])
			if i < hits {
				served += float64(c.Answers[name])
			}
		}
	}
	if all == 0 {
		return -1
	}
	return served / all
}

// instances asks the pages.
func (c *stats) instances(e *env) (all []instanceStats, err error) {
	pages := e.look(c.Page)
	for i := range pages {
		err = errors.Join(err, pages[i].err)
		for _, g := range pages[i].of(e.all.Prefix) {
			one := instanceStats{
				Instance: g.Instance, Loading: g.Loading, Queued: g.Queued, BreakersOpen: g.BreakersOpen, Warming: g.Warming, FailedRefreshes: g.Refreshes,
				HitRatio: g.hitRatio(), Numbers: g.numbers(), helps: g.Numbers,
			}
			all = append(all, one)
		}
	}
	return all, err
}

// nodeStats is what a node counts since it started, for all who use it.
type nodeStats struct {
	Node       string `json:"node"`
	Version    string `json:"version"`
	UsedMemory int64  `json:"used_memory"`
	MaxMemory  int64  `json:"maxmemory"` // 0: no limit
	Policy     string `json:"maxmemory_policy"`
	Evicted    int64  `json:"evicted_keys"`
	Hits       int64  `json:"keyspace_hits"`
	Misses     int64  `json:"keyspace_misses"`
	Clients    int64  `json:"connected_clients"`
	PerSecond  int64  `json:"ops_per_sec"`
	Problem    string `json:"problem"` // why some of it is not known; empty: all is
}

// shownStats covers all nodes, replicas included.
type shownStats struct {
	Prefix    string      `json:"prefix"`
	Listeners int64       `json:"listeners"` // processes with a local tier, which hear of invalidations; -1: the user may not know
	Nodes     []nodeStats `json:"nodes"`

	Instances []instanceStats `json:"instances,omitempty"` // with --page
	Notes     []string        `json:"notes,omitempty"`     // that no page knows the prefix
}

func (r shownStats) rows() [][]string {
	listeners := "unknown"
	if r.Listeners >= 0 {
		listeners = strconv.FormatInt(r.Listeners, 10)
	}
	rows := [][]string{
		{"listeners", listeners, "processes with a local tier under the prefix " + r.Prefix},
		{""},
		{"NODE", "VERSION", "MEMORY", "OF", "POLICY", "EVICTED", "KEYSPACE HITS", "MISSES", "CLIENTS", "OPS/S"},
	}
	var problems [][]string
	for _, n := range r.Nodes {
		if n.Problem != "" {
			problems = append(problems, []string{n.Node + ": " + n.Problem})
		}
		if n.Version == "" {
			continue // nothing is known
		}
		rows = append(rows, []string{n.Node, n.Version, mib(n.UsedMemory), mib(n.MaxMemory), n.Policy, strconv.FormatInt(n.Evicted, 10),
			strconv.FormatInt(n.Hits, 10), strconv.FormatInt(n.Misses, 10), strconv.FormatInt(n.Clients, 10), strconv.FormatInt(n.PerSecond, 10)})
	}
	if len(problems) > 0 {
		rows = append(append(rows, []string{""}), problems...)
	}
	rows = append(rows, []string{""}, []string{"KEYSPACE HITS and MISSES are of all commands of all who use a node, those of scripts and locks too: no hit ratio of the cache." +
		map[bool]string{true: " CACHEGUARD_PAGES shows that."}[len(r.Instances) == 0]})
	if len(r.Instances) > 0 {
		rows = append(rows, []string{""},
			[]string{"INSTANCE", "HIT RATIO", "LOADING", "QUEUED", "BREAKERS OPEN", "WARMING", "FAILED REFRESHES"})
	}
	for _, i := range r.Instances {
		row := []string{i.Instance, percent(i.HitRatio)}
		for _, n := range []uint64{
			uint64(i.Loading), uint64(i.Queued), uint64(i.BreakersOpen), uint64(i.Warming), i.FailedRefreshes,
		} {
			row = append(row, strconv.FormatUint(n, 10))
		}
		rows = append(rows, row)
	}
	for _, i := range r.Instances {
		for _, n := range i.helps {
			rows = append(rows, []string{i.Instance, n.Name, strconv.FormatFloat(n.Value, 'f', -1, 64), n.Help})
		}
	}
	return append(rows, noted(r.Notes)...)
}

// percent shows a ratio; -1: there is none.
func percent(ratio float64) string {
	if ratio < 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", ratio*100)
}

func mib(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
}

// Run is called by kong.
func (c *stats) Run(e *env) error {
	r := shownStats{Prefix: e.all.Prefix, Nodes: []nodeStats{}, Notes: e.notes}
	var mu sync.Mutex
	look := func(ctx context.Context, rdb *redis.Client) error {
		n, refused := statsOf(ctx, rdb)
		listeners, unheard := rdb.PubSubNumSub(ctx, channel(e)).Result()
		if isUnreachable(refused) {
			unheard = nil // for the same reason
		}
		if err := errors.Join(refused, unheard); err != nil {
			n.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		mu.Lock()
		defer mu.Unlock()
		r.Nodes = append(r.Nodes, n)
		if unheard != nil {
			r.Listeners = -1
		} else if r.Listeners >= 0 {
			r.Listeners += listeners[channel(e)] // of a cluster, each process subscribes to one node
		}
		return nil
	}
	err := e.eachNode(e.ctx, look)
	if err != nil {
		return err
	}
	if r.Instances, err = c.instances(e); len(c.Page) > 0 && len(r.Instances) == 0 {
		r.Notes = append(r.Notes, noGuard(e))
	}
	slices.SortFunc(r.Nodes, func(a, b nodeStats) int { return strings.Compare(a.Node, b.Node) })
	if err = errors.Join(err, e.out.print(r)); err != nil {
		return err
	}
	if n := slices.IndexFunc(r.Nodes, func(n nodeStats) bool { return n.Problem != "" }); n >= 0 {
		return fmt.Errorf("not all is known: %s: %s", r.Nodes[n].Node, r.Nodes[n].Problem)
	}
	return nil
}

// withoutRedis prints what the pages of instances show while Redis does not answer.
func (c *stats) withoutRedis(e *env) error {
	instances, err := c.instances(e)
	if len(instances) == 0 {
		return errors.Join(err, errors.New("cacheguardctl check says more; with CACHEGUARD_PAGES, what each instance finds wrong"))
	}
	return errors.Join(err, e.out.print(shownStats{Prefix: e.all.Prefix, Listeners: -1, Nodes: []nodeStats{}, Instances: instances}))
}

// statsOf returns at least the address.
func statsOf(ctx context.Context, rdb *redis.Client) (nodeStats, error) {
	info, err := infoOf(ctx, rdb)
	if err != nil {
		return nodeStats{Node: rdb.Options().Addr}, err
	}
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64) // 0: it does not say
		return n
	}
	return nodeStats{
		Node: rdb.Options().Addr, Version: info["redis_version"], Policy: info["maxmemory_policy"],
		UsedMemory: number("used_memory"), MaxMemory: number("maxmemory"), Evicted: number("evicted_keys"),
		Hits: number("keyspace_hits"), Misses: number("keyspace_misses"), Clients: number("connected_clients"),
		PerSecond: number("instantaneous_ops_per_sec"),
	}, nil
}
