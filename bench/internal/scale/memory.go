package scale

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/cacheguard/go/bench/internal/server"
)

// here is how many bytes of this process are in use: what is on the heap, and the goroutines' stacks.
func here() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what was in a sync.Pool survives one
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// memoryAt is how many bytes the server uses: for its clients, and for all else.
func memoryAt(ctx context.Context, redis *server.Server) (clients, data float64, err error) {
	text, err := redis.Control().Info(ctx, "memory").Result()
	if err != nil {
		return 0, 0, err
	}
	all := make(map[string]float64)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				all[name] = n
			}
		}
	}
	used, clients := all["used_memory"], all["mem_clients_normal"]
	if used == 0 {
		return 0, 0, fmt.Errorf("INFO memory: no used_memory in %q", text)
	}
	return clients, used - clients, nil
}

// bytesOfKeys is what the keys whose names contain the text take at the server, where there are few keys.
func bytesOfKeys(ctx context.Context, redis *server.Server, text string) (sum float64, err error) {
	const batch = 1000
	all := redis.Control().Scan(ctx, 0, "*"+text+"*", batch).Iterator()
	for all.Next(ctx) {
		n, err := redis.Control().MemoryUsage(ctx, all.Val(), 0).Result() // 0: look at every element
		if err != nil {
			return 0, err
		}
		sum += float64(n)
	}
	return sum, all.Err()
}
