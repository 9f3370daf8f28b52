// Package backends opens the Redis that the examples talk to. It is embedded, so that an example needs nothing but Go, unless
// REDIS_URL names a real one. Package sqldb has the database.
package backends

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Patience is the RedisTimeout of the examples: the embedded Redis is slow with scripts, and a crowd of them must queue.
const Patience = 5 * time.Second

// RedisServer is the Redis of an example: the one that REDIS_URL names, or an embedded one.
type RedisServer struct {
	options  *redis.Options
	name     string
	embedded *embeddedRedis // nil if REDIS_URL names a real one
}

// Redis opens the Redis of an example, and makes sure that it answers.
func Redis(ctx context.Context) (*RedisServer, error) {
	s := &RedisServer{}
	if raw := os.Getenv("REDIS_URL"); raw != "" {
		options, err := redis.ParseURL(raw)
		if err != nil {
			return nil, errors.New("REDIS_URL is no address of a Redis") // not why: that may have a part of the password
		}
		s.options, s.name = options, "Redis at "+options.Addr
	} else {
		embedded, err := startEmbeddedRedis()
		if err != nil {
			return nil, fmt.Errorf("start the embedded Redis: %w", err)
		}
		s.options, s.name, s.embedded = &redis.Options{Addr: embedded.server.Addr()}, "embedded Redis", embedded
	}
	s.options.DisableIdentity = true // saves two commands a connection, which an old server would refuse
	s.options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	if err := s.ping(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("redis at %s does not answer: %w", s.options.Addr, err), s.Close())
	}
	return s, nil
}

func (s *RedisServer) ping(ctx context.Context) error {
	options := *s.options
	options.MaxRetries = -1 // go-redis logs each failure: once is enough
	client := redis.NewClient(&options)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.Ping(ctx).Err()
}

// NewClient returns a new client with its own connections, as a service of its own would have. Its user closes it.
func (s *RedisServer) NewClient() *redis.Client {
	options := *s.options
	return redis.NewClient(&options)
}

// NewCountedClient is NewClient, and counts what the client asks.
func (s *RedisServer) NewCountedClient(c *Commands) *redis.Client {
	options := *s.options
	c.count(&options)
	return redis.NewClient(&options)
}

// Endpoint returns where the server listens, as net.Dial wants it.
func (s *RedisServer) Endpoint() (network, addr string) {
	if s.options.Network != "" {
		return s.options.Network, s.options.Addr
	}
	return "tcp", s.options.Addr
}

// NewClientThrough is NewClient for one that reaches the server through addr, where something passes its bytes on that may
// hang or refuse them. It tries everything once, and takes no longer than patience.
func (s *RedisServer) NewClientThrough(addr string, patience time.Duration) *redis.Client {
	options := *s.options
	options.Network, options.Addr = "tcp", addr
	options.MaxRetries, options.DialerRetries = -1, 1
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = patience, patience, patience
	return redis.NewClient(&options)
}

// Delete removes the keys that begin with prefix.
func (s *RedisServer) Delete(ctx context.Context, prefix string) error {
	client := s.NewClient()
	defer client.Close()

	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := client.Del(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("delete the keys %s*: %w", prefix, err)
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("look for the keys %s*: %w", prefix, err)
	}
	return nil
}

// String names the server.
func (s *RedisServer) String() string { return s.name }

// Close stops an embedded Redis. A real one is left as it is.
func (s *RedisServer) Close() error {
	if s.embedded != nil {
		s.embedded.stop()
	}
	return nil
}

// embeddedRedis is a miniredis with a clock that runs.
type embeddedRedis struct {
	server *miniredis.Miniredis
	done   chan struct{} // closed to stop the clock
	exited chan struct{} // closed when the clock has stopped
}

func startEmbeddedRedis() (*embeddedRedis, error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	e := &embeddedRedis{server: server, done: make(chan struct{}), exited: make(chan struct{})}
	go e.clock() // owner: e; stop: done; joined by stop
	return e, nil
}

// clock lets the keys grow old. Without it no TTL would ever pass: miniredis leaves time to its user. Keys live on until
// the next tick, so a tick is short beside the TTLs of the examples.
func (e *embeddedRedis) clock() {
	defer close(e.exited)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-e.done:
			return
		case <-tick.C:
			now := time.Now()
			e.server.FastForward(now.Sub(last))
			last = now
		}
	}
}

func (e *embeddedRedis) stop() {
	close(e.done)
	<-e.exited
	e.server.Close()
}
