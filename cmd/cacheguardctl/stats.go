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

// stats shows what Redis counts.
type stats struct{}

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
	Listeners int64       `json:"listeners"` // processes with a local tier, which hear of invalidations
	Nodes     []nodeStats `json:"nodes"`
}

func (r shownStats) rows() [][]string {
	rows := [][]string{
		{"listeners", strconv.FormatInt(r.Listeners, 10), "processes with a local tier under the prefix " + r.Prefix},
		{""},
		{"NODE", "VERSION", "MEMORY", "OF", "POLICY", "EVICTED", "HITS", "MISSES", "CLIENTS", "OPS/S"},
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
	return rows
}

func mib(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
}

// Run is called by kong.
func (c *stats) Run(e *env) error {
	r := shownStats{Prefix: e.all.Prefix, Nodes: []nodeStats{}}
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
		r.Listeners += listeners[channel(e)] // of a cluster, each process subscribes to one node
		return nil
	}
	var err error
	if cluster, is := e.rdb.(*redis.ClusterClient); is {
		err = cluster.ForEachShard(e.ctx, func(ctx context.Context, rdb *redis.Client) error { return look(ctx, rdb) })
	} else {
		err = look(e.ctx, e.rdb.(*redis.Client))
	}
	if err != nil {
		return err
	}
	slices.SortFunc(r.Nodes, func(a, b nodeStats) int { return strings.Compare(a.Node, b.Node) })
	if err := e.out.print(r); err != nil {
		return err
	}
	if n := slices.IndexFunc(r.Nodes, func(n nodeStats) bool { return n.Problem != "" }); n >= 0 {
		return fmt.Errorf("not all is known: %s: %s", r.Nodes[n].Node, r.Nodes[n].Problem)
	}
	return nil
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
