// Sizes prints what an entry takes in Redis beside its payload: in its string, and of the server's memory, beside a plain SET of the
// same bytes under the same key. Memory is in steps of the allocator, so it is the mean over payloads of all sizes up to a kilobyte.
//
//	go run ./bench/cmd/sizes
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/bench/internal/server"
	"github.com/cacheguard/go/cacheguard"
)

const entries = 2000 // of each kind, with payloads of 100 bytes and up

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	s, err := server.Start()
	if err != nil {
		return err
	}
	defer s.Close()
	rdb := s.Control()
	fmt.Println("| entry | bytes of the string | of memory |")
	fmt.Println("|---|---|---|")
	for _, named := range []bool{false, true} {
		for _, tags := range []int{0, 1, 4} {
			if err := measure(ctx, rdb, named, tags); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure prints a row.
func measure(ctx context.Context, rdb *redis.Client, named bool, tags int) error {
	g, err := cacheguard.New(rdb, cacheguard.Config{Prefix: "sizes", TTL: time.Hour, Jitter: -1})
	if err != nil {
		return err
	}
	load := func(ctx context.Context, i int) []byte {
		for tag := range tags {
			cacheguard.SetTags(ctx, "tag:"+strconv.Itoa(100+tag)) // seven bytes
		}
		return payload(i)
	}
	get, name := func(i int) error {
		_, err := cacheguard.Get(ctx, g, keyOf(i), func(ctx context.Context) ([]byte, error) { return load(ctx, i), nil })
		return err
	}, "of no cache"
	if named {
		c, err := cacheguard.NewCache(g, cacheguard.CacheConfig[int, []byte]{
			Name: "item", Load: func(ctx context.Context, i int) ([]byte, error) { return load(ctx, i), nil },
		})
		if err != nil {
			return err
		}
		get, name = func(i int) error { _, err := c.Get(ctx, i); return err }, "of a `Cache`"
	}
	for i := range entries {
		if err := get(i); err != nil {
			return err
		}
	}
	_ = g.Close() // when all is stored; always nil
	length, memory, err := more(ctx, rdb)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "| %s, tags of 7 bytes: %d | %.0f | %.0f |\n", name, tags, length, memory)
	return err
}

func keyOf(i int) string   { return "item:" + strconv.Itoa(i) }
func payload(i int) []byte { return make([]byte, 100+i%1024) }
func stored(i int) string  { return "sizes:{" + keyOf(i) + "}" }

// more returns what entries take more than plain values, on average. It replaces each by such a one.
func more(ctx context.Context, rdb *redis.Client) (length, memory float64, err error) {
	for i := range entries {
		before, size, err := look(ctx, rdb, stored(i))
		if err != nil {
			return 0, 0, err
		}
		if err := rdb.Set(ctx, stored(i), payload(i), time.Hour).Err(); err != nil {
			return 0, 0, err
		}
		plain, plainSize, err := look(ctx, rdb, stored(i))
		if err != nil {
			return 0, 0, err
		}
		length, memory = length+float64(size-plainSize)/entries, memory+float64(before-plain)/entries
	}
	return length, memory, rdb.FlushDB(ctx).Err()
}

// look returns the memory that a key takes, and the length of its value.
func look(ctx context.Context, rdb *redis.Client, key string) (memory, length int64, err error) {
	if memory, err = rdb.MemoryUsage(ctx, key).Result(); err == nil {
		length, err = rdb.StrLen(ctx, key).Result()
	}
	return memory, length, err
}
