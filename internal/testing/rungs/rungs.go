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

	start func(tb testing.TB, redis string) opener
}

// opener makes Locks of a process of their own.
type opener func(prefix string, ttl time.Duration) (Locks, error)

// All are the rungs, from the lowest.
var All = []Rung{
	{"redis", "mutex", "a dead holder", func(_ testing.TB, addr string) opener { return onRedis(addr, false) }},
	{"fair", "mutex, fair", "a dead holder", func(_ testing.TB, addr string) opener { return onRedis(addr, true) }},
	{"quorum", "Quorum of 3", "that, and the loss of one server", onQuorum},
	{"mysql", "consensus/mysql", "that, and a restart of the server", onMySQL},
	{"postgres", "consensus/postgres", "that, and a restart of the server", onPostgres},
	{"etcd", "consensus/etcd, 3 members", "that, restarts, and the loss of one member", onEtcd},
	{"zookeeper", "consensus/zookeeper, 3 members", "that, restarts, and the loss of one member", onZooKeeper},
}

// Started is a rung whose servers run.
type Started struct {
	Rung
	open opener
	end  func()
}

// Start starts the servers of a rung; those on one Redis use that at the address. The error says what is missing.
func (r Rung) Start(redis string) (*Started, error) {
	s := &Started{Rung: r}
	end, err := servers.Try(func(tb testing.TB) { s.open = r.start(tb, redis) })
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
func (s *Started) Open(prefix string, ttl time.Duration) (Locks, error) { return s.open(prefix, ttl) }

// End ends the servers.
func (s *Started) End() { s.end() }
