package serverinfo

import (
	"context"
	"fmt"

	"github.com/cacheguard/go/internal/redis/script"
)

// Evicts returns an error when Redis may evict keys. A Redis that does not say, as the user may not run INFO, passes.
// Of a cluster it looks at one node.
func Evicts(ctx context.Context, rdb script.Processor) error {
	info, err := script.Send(ctx, rdb, "INFO", "memory").Text()
	if err != nil {
		return nil //nolint:nilerr // nobody knows
	}
	return evicts(info)
}

func evicts(info string) error {
	is := parse(info)
	limit, policy := is["maxmemory"], is["maxmemory_policy"]
	if limit == "" || limit == "0" || policy == "" || policy == "noeviction" {
		return nil
	}
	return fmt.Errorf("redis may evict keys (maxmemory-policy %s, maxmemory %s): what must not be lost needs noeviction", policy, limit)
}
