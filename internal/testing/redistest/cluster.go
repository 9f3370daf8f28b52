package redistest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

const masters = 3

// Cluster is a Redis Cluster of three masters and their replicas.
type Cluster struct {
	nodes []*Server
}

// StartCluster runs a cluster of three masters with replicas each. When it returns, all slots are served, every node
// says cluster_state:ok and every node has the same view of which node serves what.
func StartCluster(tb testing.TB, replicas int) *Cluster {
	tb.Helper()
	nodes, err := launchAll(masters*(1+replicas), clusterArguments)
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cluster{}
	for _, n := range nodes {
		c.nodes = append(c.nodes, adopt(tb, n))
	}
	if err := join(c.nodes, replicas); err != nil {
		tb.Fatal(err)
	}
	return c
}

// StartClusterForMain runs a cluster of three masters outside of a test, which ends with stop, or with this process.
func StartClusterForMain() (c *Cluster, stop func() error, err error) {
	nodes, err := launchAll(masters, clusterArguments)
	if err != nil {
		return nil, nil, err
	}
	c = &Cluster{}
	for _, n := range nodes {
		c.nodes = append(c.nodes, &Server{node: n})
	}
	if err := join(c.nodes, 0); err != nil {
		return nil, nil, errors.Join(err, closeAll(nodes))
	}
	return c, func() error { return closeAll(nodes) }, nil
}

func clusterArguments(port int, dir string) ([]string, error) {
	return serverArguments([]string{
		"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "2000",
		"--enable-debug-command", "yes", // for DEBUG CLUSTERLINK
		"--repl-ping-replica-period", "1", // nodes do not list a replica that has received nothing yet
	})(port, dir)
}

// launchAll starts nodes side by side: all, or none.
func launchAll(count int, args arguments) ([]*node, error) {
	nodes, errs := make([]*node, count), make([]error, count)
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() { nodes[i], errs[i] = launch(args) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, closeAll(nodes))
	}
	return nodes, nil
}

func closeAll(nodes []*node) (err error) {
	for _, n := range nodes {
		if n != nil {
			err = errors.Join(err, n.close())
		}
	}
	return err
}

// Addrs are the host:port of all nodes, in the order of Node.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

// Node is a node of the cluster: 0, 1 and 2 started as masters, node 3+i as a replica of master i%3. Kill and Pause
// make the others fail it over after two seconds.
func (c *Cluster) Node(i int) *Server { return c.nodes[i] }

// CutBus ends the connection on which a node speaks to the one with the id, as nodes do when a timeout is over, and reports whether there was
// one. What the node has to say until it has made another, about 100 ms later, is lost. DEBUG crashes Redis 7.0 if there is none to end (redis#12930).
func CutBus(ctx context.Context, node *redis.Client, id string) (cut bool, err error) {
	links, err := node.ClusterLinks(ctx).Result()
	if err != nil || !slices.ContainsFunc(links, func(l redis.ClusterLink) bool { return l.Direction == "to" && l.Node == id }) {
		return false, err
	}
	return true, node.Do(ctx, "debug", "clusterlink", "kill", "to", id).Err()
}

// Client returns a new client that closes when tb ends. tweaks may change its options.
func (c *Cluster) Client(tb testing.TB, tweaks ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{
		Addrs:                    c.Addrs(),
		DialTimeout:              dialTimeout,
		ReadTimeout:              nodeTimeout,
		WriteTimeout:             nodeTimeout,
		DialerRetries:            1,
		ReadBufferSize:           bufferSize,
		WriteBufferSize:          bufferSize,
		DisableIdentity:          true,
		MaintNotificationsConfig: quiet(),
	}
	for _, tweak := range tweaks {
		tweak(o)
	}
	return closeAtEnd(tb, redis.NewClusterClient(o))
}
