// Package server is the Redis of a measurement: one that it starts for itself, or one that is given. It counts what the
// server does, and keeps its own questions out of the counts.
package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// Server is a Redis that somebody measures.
type Server struct {
	options redis.Options
	control *redis.Client // one connection, kept, so that looking hardly moves what is counted
	looks   atomic.Int64  // INFO commands sent by control
	looked  atomic.Int64  // bytes of their replies
	own     *redistest.Server
	stop    func()
}

// Start runs a redis-server on a free port of the loopback interface, which ends with Close and with this process, however
// that ends.
func Start() (*Server, error) {
	own, stop, err := redistest.StartForMain()
	if err != nil {
		return nil, err
	}
	s := newServer(redis.Options{Addr: own.Addr()})
	s.own, s.stop = own, stop
	return s, nil
}

// StartCluster runs a cluster of three nodes, of equal shares, which ends with stop, or with this process.
func StartCluster() (addrs []string, stop func() error, err error) {
	c, stop, err := redistest.StartClusterForMain()
	if err != nil {
		return nil, nil, err
	}
	return c.Addrs(), stop, nil
}

// Connect uses the server at url, which others may use too: their work would be counted. It must be Redis 7.0 or later.
func Connect(ctx context.Context, url string) (*Server, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("REDIS_URL cannot be read") // not why: that may have a part of the password
	}
	s := newServer(*o)
	if _, err := s.Usage(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("REDIS_URL: %w", err), s.Close())
	}
	return s, nil
}

// Of measures a server that a test runs, and leaves it running.
func Of(own *redistest.Server) *Server { return newServer(redis.Options{Addr: own.Addr()}) }

func newServer(o redis.Options) *Server {
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	control := o
	control.PoolSize = 1
	return &Server{options: o, control: redis.NewClient(&control)}
}

// Options returns the options of a client of the server.
func (s *Server) Options() *redis.Options {
	o := s.options
	return &o
}

// Control is a client for what is not to be measured. It is closed with the server.
func (s *Server) Control() *redis.Client { return s.control }

// Kill ends a server that Start started.
func (s *Server) Kill() { s.own.Kill() }

// Restart starts it again on the same port, empty.
func (s *Server) Restart() { s.own.Restart() }

// Remove deletes all keys that begin with prefix, and all there are on a server of its own.
func (s *Server) Remove(ctx context.Context, prefix string) error {
	if s.own != nil {
		return s.control.FlushAll(ctx).Err()
	}
	const batch = 1000
	keys := make([]string, 0, batch)
	all := s.control.Scan(ctx, 0, prefix+"*", batch).Iterator()
	for more := true; more; {
		if more = all.Next(ctx); more {
			keys = append(keys, all.Val())
		}
		if len(keys) == batch || !more && len(keys) > 0 {
			if err := s.control.Unlink(ctx, keys...).Err(); err != nil {
				return err
			}
			keys = keys[:0]
		}
	}
	return all.Err()
}

// Version is the server's.
func (s *Server) Version(ctx context.Context) (string, error) {
	info, err := s.info(ctx)
	return info["redis_version"], err
}

// Close ends the connection, and the server if Start started it.
func (s *Server) Close() error {
	err := s.control.Close()
	if s.stop != nil {
		s.stop()
	}
	return err
}

// Calm waits until nothing has asked the server for anything for a moment: work in the background has ended then.
func (s *Server) Calm(ctx context.Context) error {
	const moment, atMost = 20 * time.Millisecond, 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for last := int64(-1); ; {
		now, err := s.Usage(ctx)
		if err != nil {
			return err
		}
		if now.Requests == last {
			return nil
		}
		last = now.Requests
		select {
		case <-time.After(moment):
		case <-ctx.Done():
			return nil // somebody always asks
		}
	}
}
