package cacheguard

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// What docs/production.md and cacheguardctl say of connections: the pool, one for the subscription, and the pool that a go-redis has for pipelines.
func TestAGuardOpensNoMoreConnectionsThanItsClientsPoolsAndOne(t *testing.T) {
	t.Parallel()
	const pool, callers = 5, 64
	for _, pipelines := range []int64{0, -1} { // 0: what go-redis does by itself
		expect.Beside(t, fmt.Sprintf("PipelinePoolSize %d", pipelines), func(t *testing.T) {
			server, most := redistest.Start(t), pool+1
			rdb := server.Client(t, func(o *redis.Options) {
				o.PoolSize, o.ClientName = pool, "measured"
				if f := reflect.ValueOf(o).Elem().FieldByName("PipelinePoolSize"); f.IsValid() { // since 9.22
					f.SetInt(pipelines)
					if pipelines == 0 {
						most += 10 // since 9.23
					}
				}
			})
			f := newFleetOn(t, server.Client(t), Config{TTL: time.Hour}, rdb)
			var all sync.WaitGroup
			for caller := range callers {
				all.Go(func() {
					for i := range 20 {
						mustGet(t, f.guards[0], fmt.Sprint("k", caller, "-", i), returns("v"))
						_ = rdb.Ping(t.Context()).Err() // as the service's own commands
					}
				})
			}
			all.Wait()
			list, err := server.Client(t).ClientList(t.Context()).Result()
			open := strings.Count(list, "name=measured")
			if err != nil || open > most {
				t.Errorf("%d connections, %v; at most %d", open, err, most)
			}
		})
	}
}
