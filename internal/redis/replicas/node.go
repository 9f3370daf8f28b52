package replicas

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
)

// single, cluster and ring are the kinds of clients that tell which node serves a key.
type (
	single  interface{ Options() *redis.Options }
	cluster interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
		ReloadState(ctx context.Context)
	}
	ring interface {
		GetShardClientForKey(key string) (*redis.Client, error)
	}
)

// Check refuses a client that does not tell which node serves a key, as WAIT could ask another one. Where want is 0, no replica is asked, and
// any client will do.
func Check(rdb any, want int) error {
	if want <= 0 {
		return nil
	}
	switch rdb.(type) {
	case cluster, ring, single:
		return nil
	}
	return errors.New("rdb is neither a *redis.Client, a *redis.ClusterClient nor a *redis.Ring, nor embeds one: it is not known which node has a write")
}

// group is the calls of a request that one node serves.
type group struct {
	node *redis.Client // nil: the client itself
	at   []int         // the calls
}

// byNode groups the calls. Those whose node is not known get their error.
func (s *Sender) byNode(ctx context.Context, calls []*script.Call, at []int, cmds []*redis.Cmd) (groups []group) {
	if !s.manyNodes {
		return []group{{at: at}}
	}
	of := make(map[*redis.Client]int)
	for _, i := range at {
		node, err := NodeOf(ctx, s.rdb, calls[i].Keys[0])
		if err != nil {
			cmds[i] = failed(err)
			continue
		}
		n, known := of[node]
		if !known {
			n = len(groups)
			of[node] = n
			groups = append(groups, group{node: node})
		}
		groups[n].at = append(groups[n].at, i)
	}
	return groups
}

// NodeOf returns the node that serves the key; nil if the client has only one.
func NodeOf(ctx context.Context, rdb any, key string) (*redis.Client, error) {
	switch rdb := rdb.(type) {
	case cluster:
		return rdb.MasterForKey(ctx, key)
	case ring:
		return rdb.GetShardClientForKey(key)
	}
	return nil, nil
}

// moved reports whether a node does not serve the key, or not yet.
func moved(err error) bool {
	for _, prefix := range []string{"MOVED ", "ASK ", "TRYAGAIN", "READONLY", "CLUSTERDOWN"} {
		if err != nil && redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

func failed(err error) *redis.Cmd {
	cmd := redis.NewCmd(context.Background())
	cmd.SetErr(err)
	return cmd
}
