package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

const sentinelName = "primary"

// Sentinel is a primary and a replica under the eyes of one sentinel.
type Sentinel struct {
	primary, replica, sentinel *Server
}

// StartSentinel runs a primary, a replica and a sentinel that makes the replica the primary when the primary has not
// answered for half a second. When it returns, the replica follows the primary and the sentinel knows both.
func StartSentinel(tb testing.TB) *Sentinel {
	tb.Helper()
	s := &Sentinel{primary: Start(tb)}
	s.replica = StartReplica(tb, s.primary)
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	s.sentinel = startNode(tb, watching(s.primary.Port()))
	if err := await(ctx, func() error { return s.knowsReplica(ctx) }); err != nil {
		tb.Fatal(err)
	}
	return s
}

// watching makes the arguments of a sentinel, which needs a file that it can write to.
func watching(primary int) arguments {
	return func(port int, dir string) ([]string, error) {
		conf := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %q\n"+
			"sentinel monitor %[3]s 127.0.0.1 %[4]d 1\n"+
			"sentinel down-after-milliseconds %[3]s 500\n"+
			"sentinel failover-timeout %[3]s 2000\n", port, dir, sentinelName, primary)
		file := filepath.Join(dir, "sentinel.conf")
		return []string{file, "--sentinel"}, os.WriteFile(file, []byte(conf), 0o600)
	}
}

// knowsReplica returns nil when the sentinel could promote the replica.
func (s *Sentinel) knowsReplica(ctx context.Context) error {
	rdb := redis.NewSentinelClient(newClient(s.sentinel.Addr()).Options())
	defer rdb.Close() // it sent nothing that could be lost
	replicas, err := rdb.Replicas(ctx, sentinelName).Result()
	if err != nil {
		return err
	}
	for _, r := range replicas {
		if r["port"] == strconv.Itoa(s.replica.Port()) && r["flags"] == "slave" && r["master-link-status"] == "ok" {
			return nil
		}
	}
	return fmt.Errorf("redistest: the sentinel knows no healthy replica: %v", replicas)
}

// Forbear keeps the sentinel from making another primary because the machine stands still for a while.
func (s *Sentinel) Forbear() {
	err := s.sentinel.node.current().control.Do(context.Background(), "sentinel", "set", sentinelName, "down-after-milliseconds", Patience.Milliseconds()).Err()
	s.sentinel.must(err)
}

// Name is the name the sentinel knows the primary by.
func (s *Sentinel) Name() string { return sentinelName }

// Addrs are the host:port of the sentinels.
func (s *Sentinel) Addrs() []string { return []string{s.sentinel.Addr()} }

// Primary is the server that started as the primary.
func (s *Sentinel) Primary() *Server { return s.primary }

// Replica is the server that started as the replica.
func (s *Sentinel) Replica() *Server { return s.replica }

// FailoverClient returns a new client that asks the sentinel for the primary and closes when tb ends. tweaks may change
// its options.
func (s *Sentinel) FailoverClient(tb testing.TB, tweaks ...func(*redis.FailoverOptions)) *redis.Client {
	o := &redis.FailoverOptions{
		MasterName:      sentinelName,
		SentinelAddrs:   s.Addrs(),
		DialTimeout:     dialTimeout,
		ReadTimeout:     nodeTimeout,
		WriteTimeout:    nodeTimeout,
		DialerRetries:   1,
		ReadBufferSize:  bufferSize,
		WriteBufferSize: bufferSize,
		DisableIdentity: true,
	}
	for _, tweak := range tweaks {
		tweak(o)
	}
	return closeAtEnd(tb, redis.NewFailoverClient(o))
}

// StartReplica runs a replica of a server, and returns when it follows it.
func StartReplica(tb testing.TB, of *Server) *Server {
	tb.Helper()
	s := Start(tb, "--replicaof", fmt.Sprintf("127.0.0.1 %d", of.Port()))
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	if err := await(ctx, func() error { return linked(ctx, s.node.current().control) }); err != nil {
		tb.Fatal(err)
	}
	return s
}

// CutOff pauses a replica and makes its primary end their connection, with all that was on its way. Until it goes on, nothing that is
// written reaches it.
func (s *Server) CutOff(replica *Server) {
	replica.Pause()
	s.must(s.node.current().control.Do(context.Background(), "client", "kill", "type", "replica").Err())
}
