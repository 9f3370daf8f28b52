package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/examples/internal/backends"
	"github.com/cacheguard/go/examples/internal/backends/sqldb"
)

// measured is what came of a run.
type measured struct {
	visits
	queries, commands int64
}

// measure lets the visitors loose on two instances of the service, which share the database and Redis, and nothing else.
func (s *settings) measure(ctx context.Context, db *sqldb.DB, server *backends.RedisServer, wrap bool) (m measured, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	repository, err := openRepository(ctx, db, s.query)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, db.Drop(context.WithoutCancel(ctx))) }()

	instances := []store{repository, repository}
	var sent backends.Commands
	if wrap {
		prefix := "dbloader-" + strings.ToLower(rand.Text()[:10]) // a real Redis may have other users
		defer func() { err = errors.Join(err, server.Delete(context.WithoutCancel(ctx), prefix+":")) }()
		for i := range instances {
			client := server.NewCountedClient(&sent)
			defer client.Close()
			wrapped, err := newCachedRepository(repository, client, cacheguard.Config{
				Prefix: prefix, TTL: time.Minute, RedisTimeout: backends.Patience,
			})
			if err != nil {
				return m, err
			}
			defer wrapped.Close()
			instances[i] = wrapped
		}
	}
	if _, err := s.crowd(ctx, instances, s.pages/3); err != nil { // fills the cache, and does not count
		return m, err
	}
	queries, commands := repository.Queries(), sent.Sent()
	m.visits, err = s.crowd(ctx, instances, s.pages)
	m.queries, m.commands = repository.Queries()-queries, sent.Sent()-commands
	return m, err
}

// crowd sends visitors to both instances, and returns when the last has left. The first error ends all visits.
func (s *settings) crowd(ctx context.Context, instances []store, pages int) (visits, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([]visitor, len(instances)*s.visitors)
	var running sync.WaitGroup
	for i := range all {
		v := &all[i]
		v.here, v.there = instances[i%2], instances[1-i%2]
		v.number, v.of = i, len(all)
		running.Go(func() { // owner: crowd; stop: ctx; joined below
			if err := v.visit(ctx, pages, s.pagesPerWrite); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	var sum visits
	for i := range all {
		sum.add(all[i].visits)
	}
	return sum, context.Cause(ctx)
}
