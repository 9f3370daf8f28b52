// Package rivals is what cacheguard is measured beside, each behind one small adapter. None of their code is here. All
// are configured as their own documentation advises, which each adapter's comment names, with the same Redis options.
package rivals

import (
	"context"
	"errors"
	"net"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
)

// Cache is one instance of a service that caches with one of the libraries. What Get returns is shared: nobody may change it.
type Cache interface {
	// Get returns the value of the key as a user of the library would get it, from the loader when it is not there.
	Get(ctx context.Context, key string, load Loader) ([]byte, error)
	// Invalidate is what the library offers to a writer whose write is done.
	Invalidate(ctx context.Context, key string) error
	// Close ends what the instance has started, its Redis client too.
	Close() error
}

// Loader is the slow source of a value.
type Loader func(ctx context.Context) ([]byte, error)

type loaderKey struct{}

// with is for what has one function for all keys: the loader of a call travels in its context.
func (load Loader) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, loaderKey{}, load)
}

var errNoLoader = errors.New("no loader in the context")

// loadWith is that function.
func loadWith(ctx context.Context) ([]byte, error) {
	load, ok := ctx.Value(loaderKey{}).(Loader)
	if !ok {
		return nil, errNoLoader
	}
	return load(ctx)
}

// Setup is how an instance is to behave. A setting that a library lacks is left out, and its comment says so.
type Setup struct {
	Redis     *redis.Options                                                    // from which every instance makes a client of its own
	Cluster   []string                                                          // nodes of a cluster that a Cache uses instead; nil: none
	TTL       time.Duration                                                     // whole seconds, as not everybody knows shorter ones
	StaleFor  time.Duration                                                     // after TTL, while a new value is made; 0: off
	Jitter    float64                                                           // the share by which a TTL may be shorter; 0: off
	Lease     time.Duration                                                     // of the instance that loads; 0: the library's default
	Entries   int                                                               // that memory must have room for
	MaxLoads  int                                                               // of an instance at once; 0: the library's default
	Waits     bool                                                              // for Redis alone, however slow it is; for ours alone
	Observers []cacheguard.Observer                                             // for ours alone
	Dial      func(ctx context.Context, network, addr string) (net.Conn, error) // nil: as usual
	Load      func(ctx context.Context, key string) ([]byte, error)             // what Gets load, where a write loads it too; nil: none does
}

// CacheLibrary makes instances.
type CacheLibrary struct {
	Name    string // with its version
	Ours    bool
	Kind    Kind
	Promise string // one of the promises
	Open    func(Setup) (Cache, error)

	Inboxes bool // it wakes by PUBLISH, each waiting instance once
}

// Kind says where a hit comes from. Only libraries of the same kind are compared.
type Kind string

// The kinds.
const (
	Shared      Kind = "Redis"               // all instances share what is cached, and every hit is read there
	Multiplexed Kind = "Redis, one socket"   // as far as a connection goes that everybody shares; a limit, and no rival
	Tiered      Kind = "memory before Redis" // hits come from the process's memory, which Redis' messages keep right
	Local       Kind = "memory"              // there is no Redis: each instance loads for itself, and hears of nobody's writes
)

// The promises of libraries about the loads of a key that many miss at once.
const (
	OnePerFleet   = "one load in the fleet"
	OnePerProcess = "one load in each process"
	NoPromise     = "no promise"
)

// Caches are all of them, ours first in each kind.
var Caches = []CacheLibrary{
	cacheguardShared, byHand, goRedisCache, rocks, gocache,
	cacheguardTiered, aside,
	sturdy, otterLoader,
}

// Prefix begins every key of a measurement, so that they can be removed from a Redis that has others too.
const Prefix = "cacheguard-bench:"

const poolSize = 20 // go-redis' own choice on two cores, fixed so that all machines measure the same

// universal makes a go-redis client for an instance, of the cluster if there is one.
func (s Setup) universal() redis.UniversalClient {
	if s.Cluster == nil {
		return s.client()
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Cluster, PoolSize: poolSize, Dialer: s.Dial})
}

// client makes a go-redis client of one server for an instance.
func (s Setup) client() *redis.Client {
	o := *s.Redis
	o.PoolSize = poolSize
	if s.Dial != nil {
		o.Dialer = s.Dial
	}
	return redis.NewClient(&o)
}

// bytesOf is for the libraries whose values are strings: to copy them would be charged to them.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
