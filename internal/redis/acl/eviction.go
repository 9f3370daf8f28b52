package acl

import (
	"context"
	"fmt"
	"strings"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// checkEviction returns an error when Redis may evict keys. A Redis that does not say, as the user may not run INFO, passes. Of a
// cluster it looks at one node.
func checkEviction(ctx context.Context, tasks lifecycle.Tasks, rdb script.Processor) error {
	_, err := lifecycle.Bounded(ctx, tasks, left(ctx), func(ctx context.Context) (struct{}, error) {
		info, err := script.Send(ctx, rdb, "INFO", "memory").Text()
		if err != nil {
			return struct{}{}, nil //nolint:nilerr // nobody knows
		}
		return struct{}{}, evicts(info)
	}, nil)
	return err
}

func evicts(info string) error {
	limit, policy := "", ""
	for line := range strings.Lines(info) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "maxmemory":
			limit = value
		case "maxmemory_policy":
			policy = value
		}
	}
	if limit == "" || limit == "0" || policy == "" || policy == "noeviction" {
		return nil
	}
	return fmt.Errorf("redis may evict keys (maxmemory-policy %s, maxmemory %s): what must not be lost needs noeviction", policy, limit)
}
