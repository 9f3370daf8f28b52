package redistest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Move moves a slot from the node that serves it to the master to, key by key, as resharding does. While is called before each
// key and once more before the slot has moved, with how many keys were moved so far; it may be nil.
func (c *Cluster) Move(ctx context.Context, slot, to int, while func(moved int)) error {
	rdbs := controls(c.nodes[:masters])
	from, err := owner(ctx, rdbs, slot)
	if err != nil || from == to {
		return err
	}
	ids := make([]string, len(rdbs))
	for i, rdb := range rdbs {
		if ids[i], err = rdb.Do(ctx, "cluster", "myid").Text(); err != nil {
			return fmt.Errorf("redistest: node %d: %w", i, err)
		}
	}
	err = errors.Join(
		rdbs[to].Do(ctx, "cluster", "setslot", slot, "importing", ids[from]).Err(),
		rdbs[from].Do(ctx, "cluster", "setslot", slot, "migrating", ids[to]).Err())
	for moved := 0; err == nil; moved++ {
		if while != nil {
			while(moved)
		}
		var keys []string
		if keys, err = rdbs[from].ClusterGetKeysInSlot(ctx, slot, 1).Result(); err != nil || len(keys) == 0 {
			break
		}
		err = rdbs[from].Migrate(ctx, "127.0.0.1", fmt.Sprint(c.nodes[to].Port()), keys[0], 0, nodeTimeout).Err()
	}
	if err != nil {
		return fmt.Errorf("redistest: move slot %d from node %d to %d: %w", slot, from, to, err)
	}
	for _, i := range []int{to, from, 0, 1, 2} { // the new owner first, so that the slot is never nobody's
		if err := rdbs[i].Do(ctx, "cluster", "setslot", slot, "node", ids[to]).Err(); err != nil {
			return fmt.Errorf("redistest: node %d: %w", i, err)
		}
	}
	return agreed(ctx, rdbs)
}

// agreed waits until all nodes know of the latest epoch: the next one to take a slot must have a later one, or an earlier owner's
// claim counts for more, and in the end nobody serves the slot.
func agreed(ctx context.Context, rdbs []*redis.Client) error {
	for range 500 {
		epochs := make(map[string]bool)
		for i, rdb := range rdbs {
			info, err := rdb.ClusterInfo(ctx).Result()
			if err != nil {
				return fmt.Errorf("redistest: node %d: %w", i, err)
			}
			_, after, _ := strings.Cut(info, "cluster_current_epoch:")
			epoch, _, _ := strings.Cut(after, "\r")
			epochs[epoch] = true
		}
		if len(epochs) == 1 {
			return nil
		}
		<-time.After(10 * time.Millisecond)
	}
	return errors.New("redistest: the nodes do not agree on an epoch")
}

// owner is which of the masters says that it serves the slot.
func owner(ctx context.Context, rdbs []*redis.Client, slot int) (int, error) {
	for i, rdb := range rdbs {
		slots, err := rdb.ClusterNodes(ctx).Result()
		if err != nil {
			return 0, fmt.Errorf("redistest: node %d: %w", i, err)
		}
		if serves(slots, slot) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("redistest: nobody serves slot %d", slot)
}

// serves looks for the slot in the line of CLUSTER NODES about the node itself.
func serves(nodes string, slot int) bool {
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !strings.Contains(fields[2], "myself") {
			continue
		}
		for _, span := range fields[8:] {
			low, high := 0, 0
			if n, _ := fmt.Sscanf(span, "%d-%d", &low, &high); n == 1 {
				high = low
			} else if n != 2 {
				continue // [slot->-node], which is moving
			}
			if low <= slot && slot <= high {
				return true
			}
		}
	}
	return false
}
