package otel_test

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/mutex"
	"github.com/cacheguard/go/otel"
)

// Spans and metrics go to the providers that the program has set with otel.SetTracerProvider and otel.SetMeterProvider.
func ExampleNew() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	telemetry, err := otel.New(otel.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer telemetry.Close()

	guard, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "shop", Hooks: telemetry.Guard("shop"), Observers: []cacheguard.Observer{telemetry.Observer("shop")}})
	if err != nil {
		log.Fatal(err)
	}
	defer guard.Close()
	telemetry.Watch("shop", guard)

	fmt.Println(guard.Stats().Loading, "loads")
	// Output: 0 loads
}

func ExampleTelemetry_Lock() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	telemetry, err := otel.New(otel.Config{Keys: true}) // names of locks are on the spans
	if err != nil {
		log.Fatal(err)
	}
	defer telemetry.Close()

	locks, err := mutex.New(rdb, mutex.Config{Prefix: "jobs", Hooks: telemetry.Lock("jobs")})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	if err := locks.Do(context.Background(), "import", func(context.Context, *mutex.Lease) error { return nil }); err != nil {
		log.Print(err)
	}
}
