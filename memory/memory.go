package memory

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Config says how much a client may store.
type Config struct {
	MaxBytes int64            // that all keys take together, more or less as Redis counts them; required
	Now      func() time.Time // the clock, for tests; where it goes back, it stands still. nil: the machine's, which nobody sets
	Limiter  redis.Limiter    // as in redis.Options: may refuse what is asked, as an outage in a test does; nil: nothing is
}

// Addr is the address that a client of this package names: nobody listens there.
const Addr = "memory"

// New returns a client with an engine of its own in this process. It starts no goroutine. Close ends it, and all that it has stored.
func New(cfg Config) (*redis.Client, error) {
	if cfg.MaxBytes <= 0 {
		return nil, fmt.Errorf("memory: MaxBytes is %d: it must be above 0", cfg.MaxBytes)
	}
	client, _, err := open(cfg)
	return client, err
}

// open returns the engine, too.
func open(cfg Config) (*redis.Client, *engine, error) {
	e := newEngine(cfg)
	o := &redis.Options{
		Addr: Addr, Limiter: cfg.Limiter, Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1,
		ConnMaxIdleTime: -1, ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10,
		// Below 9.23, go-redis asks the DNS about Addr, unless it has an EndpointType.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled, EndpointType: maintnotifications.EndpointTypeNone},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return newConn(e), nil
		},
	}
	if f := reflect.ValueOf(o).Elem().FieldByName("PipelinePoolSize"); f.IsValid() { // go-redis has it since 9.22
		f.SetInt(-1)
	}
	client := redis.NewClient(o)
	// The client has no hook for its end, but ends its connections: while this one is taken, nothing else ends it.
	last := client.Conn()
	if err := last.Ping(context.Background()).Err(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("memory: %w", err), client.Close())
	}
	client.AddHook(&hook{engine: e, last: last, limiter: cfg.Limiter})
	return client, e, nil
}
