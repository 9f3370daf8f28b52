package metrics_test

import (
	"context"
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/metrics"
)

func ExampleMetrics_Guard() {
	rdb := redis.NewClient(&redis.Options{Addr: metrics.SharedAddr()})
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	m, err := metrics.New(registry, metrics.Config{})
	if err != nil {
		log.Fatal(err)
	}
	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "measured", Observers: []cacheguard.Observer{m.Guard("shop")}})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	m.Watch("shop", guard)

	for range 3 {
		_, _ = cacheguard.Get(context.Background(), guard, "price:42", func(context.Context) (int, error) { return 1999, nil })
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		var n uint64
		for _, m := range f.GetMetric() {
			n += m.GetHistogram().GetSampleCount()
		}
		switch f.GetName() {
		case "cacheguard_load_duration_seconds":
			fmt.Println("loads:", n)
		case "cacheguard_request_duration_seconds":
			fmt.Println("requests:", n)
		}
	}
	// Output:
	// loads: 1
	// requests: 3
}
