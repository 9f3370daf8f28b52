package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slots       = 16384
	joinTimeout = 60 * time.Second // about 5 s are usual; a loaded machine takes longer
)

// join makes one cluster of fresh nodes: the first three become masters, the others replicas.
func join(nodes []*Server, replicas int) error {
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	rdbs := controls(nodes)
	if err := assign(ctx, rdbs); err != nil {
		return err
	}
	if err := meet(ctx, nodes, rdbs); err != nil {
		return err
	}
	if err := replicate(ctx, rdbs); err != nil {
		return err
	}
	return await(ctx, func() error { return agree(ctx, rdbs, replicas) })
}

func controls(nodes []*Server) []*redis.Client {
	rdbs := make([]*redis.Client, len(nodes))
	for i, n := range nodes {
		rdbs[i] = n.node.current().control
	}
	return rdbs
}

// assign gives the masters their slots, and every node an epoch of its own: nodes that meet with the same one need
// seconds to settle it.
func assign(ctx context.Context, rdbs []*redis.Client) error {
	for i, rdb := range rdbs {
		if err := rdb.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return fmt.Errorf("redistest: CLUSTER SET-CONFIG-EPOCH: %w", err)
		}
		if i >= masters {
			continue
		}
		first, next := i*slots/masters, (i+1)*slots/masters
		if err := rdb.ClusterAddSlotsRange(ctx, first, next-1).Err(); err != nil {
			return fmt.Errorf("redistest: CLUSTER ADDSLOTS: %w", err)
		}
	}
	return nil
}

// meet introduces every node to all before it, as gossip would take seconds, and returns when each knows all the others.
func meet(ctx context.Context, nodes []*Server, rdbs []*redis.Client) error {
	for i, rdb := range rdbs {
		for _, n := range nodes[:i] {
			if err := rdb.ClusterMeet(ctx, "127.0.0.1", strconv.Itoa(n.Port())).Err(); err != nil {
				return fmt.Errorf("redistest: CLUSTER MEET: %w", err)
			}
		}
	}
	return await(ctx, func() error {
		for i, rdb := range rdbs {
			view, err := rdb.ClusterNodes(ctx).Result()
			if err != nil {
				return err
			}
			known := strings.Count(view, "\n")
			if known != len(rdbs) || strings.Contains(view, "handshake") {
				return fmt.Errorf("redistest: %s has not met all of %d nodes:\n%s", nodes[i].Addr(), len(rdbs), view)
			}
		}
		return nil
	})
}

// replicate makes node 3+i a replica of master i%3.
func replicate(ctx context.Context, rdbs []*redis.Client) error {
	for i := masters; i < len(rdbs); i++ {
		id, err := rdbs[i%masters].Do(ctx, "cluster", "myid").Text()
		if err != nil {
			return fmt.Errorf("redistest: CLUSTER MYID: %w", err)
		}
		if err := rdbs[i].ClusterReplicate(ctx, id).Err(); err != nil {
			return fmt.Errorf("redistest: CLUSTER REPLICATE: %w", err)
		}
	}
	return nil
}

// agree returns nil when every node finds the cluster in order and all see the same one.
func agree(ctx context.Context, rdbs []*redis.Client, replicas int) error {
	var first []string
	for i, rdb := range rdbs {
		state, err := rdb.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		if !strings.Contains(state, "cluster_state:ok") {
			return fmt.Errorf("redistest: node %d:\n%s", i, state)
		}
		if err := linked(ctx, rdb); err != nil {
			return fmt.Errorf("redistest: node %d: %w", i, err)
		}
		view, err := topology(ctx, rdb, replicas)
		if err != nil {
			return fmt.Errorf("redistest: node %d: %w", i, err)
		}
		if i == 0 {
			first = view
		}
		if !slices.Equal(view, first) {
			return fmt.Errorf("redistest: node 0 sees %v, node %d sees %v", first, i, view)
		}
	}
	return nil
}

// linked returns an error for a replica that does not follow its master yet.
func linked(ctx context.Context, rdb *redis.Client) error {
	info, err := rdb.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if strings.Contains(info, "role:slave") && !strings.Contains(info, "master_link_status:up") {
		return fmt.Errorf("replica without a link to its master:\n%s", info)
	}
	return nil
}

// topology is a node's view of which node serves which slots, in a comparable form.
func topology(ctx context.Context, rdb *redis.Client, replicas int) ([]string, error) {
	// go-redis' own cluster client asks this too, and it leaves out replicas that are not ready.
	ranges, err := rdb.ClusterSlots(ctx).Result() //nolint:staticcheck // see above
	if err != nil {
		return nil, err
	}
	var view []string
	covered := 0
	for _, r := range ranges {
		if len(r.Nodes) != 1+replicas {
			return nil, fmt.Errorf("slots %d-%d have %d nodes, not %d", r.Start, r.End, len(r.Nodes), 1+replicas)
		}
		covered += r.End - r.Start + 1
		for i, n := range r.Nodes {
			view = append(view, fmt.Sprintf("%05d-%05d master=%t %s", r.Start, r.End, i == 0, n.Addr))
		}
	}
	if covered != slots {
		return nil, fmt.Errorf("%d slots of %d are served", covered, slots)
	}
	slices.Sort(view)
	return view, nil
}
