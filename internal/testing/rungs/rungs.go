// Package rungs opens every kind of lock of the library, on servers of its own, for examples and benchmarks. It is a module because
// it needs the clients of all of them.
package rungs

import (
	"fmt"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/servers"
)

// Rung is a kind of lock.
type Rung struct {
	Name     string // short, for flags
	Title    string
	Survives string // in a few words; docs/locks.md has the tests

	// start starts its servers; nil: its locks are on the Redis that there is.
	start func(tb testing.TB) (addr string, members []Member)
	open  func(addr, prefix string, ttl time.Duration) (Locks, error)
}

// Member is one of the servers of a rung.
type Member interface {
	Kill()
	Start() // again
	Pause()
	Resume()
}

// All are the rungs, from the lowest.
var All = []Rung{
	{"redis", "mutex", "a dead holder", nil, onRedis(false)},
	{"fair", "mutex, fair", "a dead holder", nil, onRedis(true)},
	{"quorum", "Quorum of 3", "that, and the loss of one server", startQuorum, onQuorum},
	{"mysql", "consensus/mysql", "that, and a restart of the server", startMySQL, onMySQL},
	{"postgres", "consensus/postgres", "that, and a restart of the server", startPostgres, onPostgres},
	{"etcd", "consensus/etcd, 3 members", "that, restarts, and the loss of one member", startEtcd, onEtcd},
	{"zookeeper", "consensus/zookeeper, 3 members", "that, restarts, and the loss of one member", startZooKeeper, onZooKeeper},
}

// Open makes a process that asks for locks of the rung whose servers are at the address.
func (r Rung) Open(addr, prefix string, ttl time.Duration) (Locks, error) {
	return r.open(addr, prefix, ttl)
}

// Started is a rung whose servers run.
type Started struct {
	Rung
	Addr    string
	Members []Member // none: it is on a Redis that was there

	end func()
}

// Start starts the servers of a rung; those on one Redis use that at the address. The error says what is missing.
func (r Rung) Start(redis string) (*Started, error) {
	s := &Started{Rung: r, Addr: redis, end: func() {}}
	if r.start == nil {
		return s, nil
	}
	end, err := servers.Try(func(tb testing.TB) { s.Addr, s.Members = r.start(tb) })
	if err != nil {
		if end != nil {
			end()
		}
		return nil, fmt.Errorf("%s: %w", r.Title, err)
	}
	s.end = end
	return s, nil
}

// Open makes a process that asks for locks. The caller closes it before End.
func (s *Started) Open(prefix string, ttl time.Duration) (Locks, error) {
	return s.Rung.Open(s.Addr, prefix, ttl)
}

// End ends the servers.
func (s *Started) End() { s.end() }
