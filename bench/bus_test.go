package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// BenchmarkClusterBus publishes on one node of three, to nobody. PUBLISH goes to every node of the cluster, SPUBLISH to
// those of the channel's shard, which is one without replicas.
func BenchmarkClusterBus(b *testing.B) {
	cluster := redistest.StartCluster(b, 0)
	for _, size := range []int{100, 1 << 10, 4 << 10} {
		for _, command := range []string{"publish", "spublish"} {
			b.Run(fmt.Sprintf("%s/%d_B", command, size), func(b *testing.B) { publish(b, cluster, command, size) })
		}
	}
}

func publish(b *testing.B, cluster *redistest.Cluster, command string, size int) {
	const batch = 100
	ctx, payload := context.Background(), bytes.Repeat([]byte("x"), size)
	publisher, peer := server.Of(cluster.Node(0)), server.Of(cluster.Node(1))
	defer publisher.Close()
	defer peer.Close()
	channel := ownChannel(ctx, b, publisher.Control())
	was, peerWas := usage(b, publisher), usage(b, peer)
	n := 0
	for b.Loop() {
		_, err := publisher.Control().Pipelined(ctx, func(p redis.Pipeliner) error {
			for range batch {
				p.Do(ctx, command, channel, payload)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		n += batch
	}
	if err := peer.Calm(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(usage(b, publisher).Since(was).CPU.Nanoseconds())/1000/float64(n), "publisher-µs/message")
	b.ReportMetric(float64(usage(b, peer).Since(peerWas).CPU.Nanoseconds())/1000/float64(n), "peer-µs/message")
}

// BenchmarkFanOut publishes to many subscribers of one channel, as an Invalidate does to local tiers, one message after the other.
func BenchmarkFanOut(b *testing.B) {
	for _, subscribers := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d_subscribers", subscribers), func(b *testing.B) { fanOut(b, subscribers) })
	}
}

func fanOut(b *testing.B, subscribers int) {
	ctx, s := context.Background(), server.Of(shared)
	defer s.Close()
	rdb := shared.Client(b)
	channel, payload := fmt.Sprint("crowd:", subscribers), bytes.Repeat([]byte("x"), 100)
	heard := make(chan struct{}, subscribers)
	var listening sync.WaitGroup
	subs := make([]*redis.PubSub, subscribers)
	for i := range subs {
		subs[i] = rdb.Subscribe(ctx, channel)
		if _, err := subs[i].Receive(ctx); err != nil {
			b.Fatal(err)
		}
		listening.Go(func() { // owner: fanOut; stop: Close; joined below
			for {
				if _, err := subs[i].ReceiveMessage(ctx); err != nil {
					return
				}
				heard <- struct{}{}
			}
		})
	}
	was, n := usage(b, s), 0
	for ; b.Loop(); n++ {
		if err := rdb.Publish(ctx, channel, payload).Err(); err != nil {
			b.Fatal(err)
		}
		for range subs {
			<-heard
		}
	}
	b.ReportMetric(float64(usage(b, s).Since(was).CPU.Nanoseconds())/1000/float64(n*subscribers), "server-µs/subscriber")
	for _, sub := range subs {
		_ = sub.Close() // of a client that ends with the benchmark
	}
	listening.Wait()
}

// ownChannel is a channel in a slot of the client's node: SPUBLISH refuses others.
func ownChannel(ctx context.Context, b *testing.B, rdb *redis.Client) string {
	for i := range 1000 {
		channel := fmt.Sprint("channel:", i)
		if rdb.Do(ctx, "spublish", channel, "").Err() == nil {
			return channel
		}
	}
	b.Fatal("the node has no slot")
	return ""
}

func usage(b *testing.B, s *server.Server) server.Usage {
	u, err := s.Usage(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	return u
}
