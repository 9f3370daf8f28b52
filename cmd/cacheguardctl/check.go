package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/serverinfo"
)

// How long a node may take to say anything, and what a Guard or a lock needs may take: less where a node is silent.
const (
	silentAfter = 4 * time.Second
	trying      = 10 * time.Second
	tryingLess  = 3 * time.Second
)

// farApart is how far two clocks are never apart that are synchronized.
const farApart = 30 * time.Second

// check tries what guards and locks need.
type check struct {
	NoLocks bool     `help:"Do not check what locks need: a Redis for a cache alone may evict keys."`
	Page    []string `env:"CACHEGUARD_PAGES" help:"URLs of the page of package admin on instances: says what each of them finds wrong." placeholder:"URL"`
}

// The words for a finding.
const (
	ok      = "ok"
	warning = "warning"
	wrong   = "failed"
)

// finding is the result of one check.
type finding struct {
	Check  string `json:"check"`
	Node   string `json:"node"` // empty: it is about all
	Result string `json:"result"`
	Detail string `json:"detail"`

	past float64 // how many seconds ago it was seen last, of what may be over; 0: it lasts

	isCause, isBrought bool // a Redis that is silent or slow or refuses everything, and what that may bring
}

// checked is all of them.
type checked struct {
	Prefix     string    `json:"prefix"`
	LockPrefix string    `json:"lock_prefix"`
	OK         bool      `json:"ok"`
	Findings   []finding `json:"findings"`
	Notes      []string  `json:"notes,omitempty"` // that nobody seems to use the prefix
}

func (r checked) rows() (rows [][]string) {
	for _, f := range r.Findings {
		rows = append(rows, []string{f.Result, f.Check, f.Node, f.Detail})
	}
	return rows
}

// Run is called by kong. What has one cause, as that Redis is slow, is said as that: the cause first.
func (c *check) Run(e *env) error {
	var nodes, tried, pages []finding
	var asking sync.WaitGroup
	asking.Go(func() { pages = c.pageFindings(e) }) // owner: Run; stop: pageTimeout; joined below
	var trips slowest
	var err error
	e.patiently("the nodes of Redis", func() {
		nodes, err = eachPrimary(e, func(ctx context.Context, node *redis.Client) []finding { return c.node(ctx, node, &trips) })
	})
	if err != nil {
		nodes = append(nodes, finding{Check: "nodes", Result: wrong, Detail: err.Error()})
	}
	var f fleet
	trying := func() { tried = c.tries(e, nodes, &trips) }
	e.patiently("what a Guard and locks need", func() { e.leavingNothing(nodes, trying, func() bool { f = e.fleet(c.Page); return f.here > 0 }) })
	asking.Wait()

	r := checked{Prefix: e.all.Prefix, LockPrefix: e.all.LockPrefix, Notes: e.notes, Findings: slices.Concat(f.findings(e), causesFirst(nodes, tried), tried, pages)}
	r.OK = !slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Result == wrong })
	if err := e.out.print(r); err != nil || r.OK {
		return err
	}
	return errors.New("a check failed")
}

// withoutRedis prints what can be known while Redis does not answer: that, and what the pages of instances show.
func (c *check) withoutRedis(e *env, why error) error {
	cause := finding{Check: "redis", Result: wrong, Detail: why.Error()}
	return e.out.print(checked{Prefix: e.all.Prefix, LockPrefix: e.all.LockPrefix, Findings: append([]finding{cause}, c.pageFindings(e)...)})
}

// eachPrimary looks at each node that takes writes, and returns what was found in the order of their addresses.
func eachPrimary(e *env, look func(context.Context, *redis.Client) []finding) ([]finding, error) {
	one, isOne := e.rdb.(*redis.Client)
	if isOne {
		return look(e.ctx, one), nil
	}
	var mu sync.Mutex
	var all []finding
	err := e.rdb.(*redis.ClusterClient).ForEachMaster(e.ctx, func(ctx context.Context, node *redis.Client) error {
		found := look(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, found...)
		return nil
	})
	slices.SortStableFunc(all, func(a, b finding) int { return strings.Compare(a.Node, b.Node) })
	return all, err
}

// node looks at one node. A question that the user may not ask becomes a warning.
func (c *check) node(ctx context.Context, rdb *redis.Client, trips *slowest) []finding {
	addr := rdb.Options().Addr
	say := func(name string, err error, result, detail string) finding {
		switch {
		case isUnreachable(err):
			result, detail = wrong, err.Error()
		case err != nil:
			result, detail = warning, err.Error()
		}
		return finding{Check: name, Node: addr, Result: result, Detail: detail}
	}
	first, cancel := context.WithTimeout(ctx, silentAfter)
	defer cancel()
	info, err := infoOf(first, rdb)
	if isUnreachable(err) {
		return []finding{{Check: silent, Node: addr, Result: wrong, Detail: "it does not answer: " + err.Error()}}
	}
	found := []finding{whichServer(ctx, rdb)}
	result, detail := eviction(info, c.NoLocks)
	found = append(found, say("maxmemory-policy", err, result, detail))
	found = append(found, c.replicas(ctx, rdb, info)...)
	result, detail = memory(info)
	found = append(found, say("memory", err, result, detail))
	latency, offset, err := measure(ctx, rdb)
	result, detail = latency.judge()
	trips.add(latency)
	found = append(found, say("latency", err, result, detail))
	result, detail = clock(offset)
	return append(found, say("clock", err, result, detail))
}

// whichServer names the server. That the user may not know which it is is a warning.
func whichServer(ctx context.Context, rdb *redis.Client) finding {
	name := serverinfo.Ask(ctx, rdb)
	f := finding{Check: "version", Node: rdb.Options().Addr, Result: ok, Detail: name.String()}
	if err := name.TooOld(); err != nil {
		f.Result, f.Detail = wrong, err.Error()
	} else if name.Version == "" {
		f.Result = warning
	}
	return f
}

// replicas looks at how the replicas that a primary names evict: what is promoted evicts like that. That they cannot be asked from here
// need not be wrong, as their addresses may be those of another network.
func (c *check) replicas(ctx context.Context, primary *redis.Client, info map[string]string) (found []finding) {
	for n := 0; info["slave"+strconv.Itoa(n)] != ""; n++ {
		is := make(map[string]string)
		for field := range strings.SplitSeq(info["slave"+strconv.Itoa(n)], ",") {
			name, value, _ := strings.Cut(field, "=")
			is[name] = value
		}
		o := *primary.Options()
		o.Addr, o.Dialer = net.JoinHostPort(is["ip"], is["port"]), nil // a Sentinel's dialer asks for the primary
		replica := redis.NewClient(&o)
		its, err := infoOf(ctx, replica)
		_ = replica.Close() // it has answered
		f := finding{Check: "maxmemory-policy", Node: o.Addr}
		if f.Result, f.Detail = eviction(its, c.NoLocks); err != nil {
			f.Result, f.Detail = warning, err.Error()
		}
		f.Detail = "replica: " + f.Detail
		found = append(found, f)
	}
	return found
}

// eviction says what the policy means: a cache may lose keys, locks may not.
func eviction(info map[string]string, noLocks bool) (result, detail string) {
	policy, limit := info["maxmemory_policy"], info["maxmemory_human"]
	detail = policy + ", maxmemory " + limit
	switch {
	case info["maxmemory"] == "0":
		return ok, policy + ", no maxmemory"
	case policy == "noeviction":
		return ok, detail + ": a full Redis refuses to store values"
	case noLocks:
		return ok, detail
	}
	return warning, detail + ": locks may be evicted"
}

// clock says how far the server's clock is from this machine's: the times of one of them mislead whoever compares logs.
func clock(ahead time.Duration) (result, detail string) {
	ahead = ahead.Round(time.Millisecond)
	result, detail = ok, fmt.Sprintf("%v ahead of this machine", ahead)
	if ahead < 0 {
		detail = fmt.Sprintf("%v behind this machine", -ahead)
	}
	if ahead.Abs() >= farApart {
		result = warning
	}
	return result, detail
}

// memory says whether there is room left.
func memory(info map[string]string) (result, detail string) {
	used, _ := strconv.ParseInt(info["used_memory"], 10, 64) // 0: it does not say
	limit, _ := strconv.ParseInt(info["maxmemory"], 10, 64)  // the same
	detail = mib(used) + " used of " + mib(limit)
	switch {
	case limit == 0:
		return ok, mib(used) + " used, no maxmemory"
	case used >= limit && info["maxmemory_policy"] == "noeviction":
		return wrong, detail + ": full, values are not stored"
	case used > limit/10*9:
		return warning, detail
	}
	return ok, detail
}

// infoOf is what INFO says.
func infoOf(ctx context.Context, rdb redis.Cmdable) (map[string]string, error) {
	raw, err := rdb.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	info := make(map[string]string)
	for line := range strings.Lines(raw) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}
