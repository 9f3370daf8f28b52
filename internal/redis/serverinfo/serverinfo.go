// Package serverinfo asks a server what it is, as far as the user may know.
package serverinfo

import (
	"context"
	"fmt"
	"strings"

	"github.com/cacheguard/go/internal/redis/script"
)

// oldest is the oldest Redis whose scripts know what those of the library need: flags, which Redis 7.0 brought.
const oldest = 7

// Name is what a server says of itself.
type Name struct {
	Product string // in lower case: redis, valkey, redict, dragonfly
	Version string
	Mode    string // standalone, cluster or sentinel; empty: it does not say
	Why     string // where the others are empty: why
}

// String is as "valkey 8.0.1, cluster".
func (n Name) String() string {
	switch {
	case n.Version == "" && n.Why == "":
		return "unknown"
	case n.Version == "":
		return "unknown (" + n.Why + ")"
	case n.Mode == "":
		return n.Product + " " + n.Version
	}
	return n.Product + " " + n.Version + ", " + n.Mode
}

// TooOld returns an error for a server that is known to lack what scripts need. Of other products nobody knows.
func (n Name) TooOld() error {
	major := oldest
	if n.Product == "redis" || n.Product == "keydb" { // KeyDB 6 is a Redis 6
		_, _ = fmt.Sscanf(n.Version, "%d", &major) // what is no number is not judged
	}
	if major < oldest {
		return fmt.Errorf("%s is too old: scripts need Redis %d.0 or later, or Valkey", n, oldest)
	}
	return nil
}

// Ask asks for INFO, and, if the user may not know that, for HELLO, which nobody can be refused and which changes
// nothing without arguments.
func Ask(ctx context.Context, rdb script.Processor) Name {
	rdb = script.Once(rdb)
	text, err := script.Send(ctx, rdb, "info", "server").Text()
	if err == nil {
		return OfInfo(text)
	}
	if name := ofHello(script.Send(ctx, rdb, "hello").Val()); name.Version != "" {
		return name
	}
	why := err.Error()
	if strings.HasPrefix(why, "NOPERM") {
		why = "INFO refused"
	}
	return Name{Why: why}
}

// products imitate Redis, and name themselves beside the version that they imitate.
var products = []string{"valkey", "redict", "dragonfly", "keydb", "kvrocks", "garnet", "memory"}

// OfInfo reads INFO.
func OfInfo(info string) Name {
	is := parse(info)
	n := Name{Product: "redis", Version: is["redis_version"]}
	for _, product := range products {
		if version := is[product+"_version"]; version != "" {
			n.Product, n.Version = product, strings.TrimPrefix(version, "df-v")
		}
	}
	for _, mode := range []string{"redis_mode", "server_mode", n.Product + "_mode"} {
		if is[mode] != "" {
			n.Mode = is[mode]
		}
	}
	if n.Version == "" {
		return Name{Why: "INFO has no version"}
	}
	return n
}

// parse reads the lines of INFO.
func parse(info string) map[string]string {
	is := make(map[string]string)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		is[name] = value
	}
	return is
}

// ofHello reads the reply to HELLO.
func ofHello(reply any) Name {
	is := script.Fields(reply)
	return Name{Product: is["server"], Version: is["version"], Mode: is["mode"]}
}

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
