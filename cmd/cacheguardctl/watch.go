package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/keys"
)

// watch shows invalidations, and samples what instances do.
// The keys of an Update, a Put or an intent are shown twice: when it is announced, and at its end.
type watch struct {
	Count int           `help:"Stop after so many invalidations, or samples; 0: never." placeholder:"N"`
	Every time.Duration `help:"Count invalidations by cache for so long, instead of showing each: messages, of which an Update and an intent have two."`
	Page  []string      `env:"CACHEGUARD_PAGES" help:"URLs of the page of package admin on some instances: adds what their caches do. Every 2s by default." placeholder:"URL"`
}

// seen is an invalidation, or that the connection was made: what was published before is lost.
type seen struct {
	Time  string `json:"time"`
	Event string `json:"event"` // subscribed, invalidated, invalidated_many, unknown
	Name  string `json:"name"`  // the key; of many, "*", "cache NAME" or "tag TAG"; of what is unknown, the message

	cache string // which the keys are of; empty: none, or nobody knows
}

func (r seen) rows() [][]string { return [][]string{{r.Time, r.Event, r.Name}} }

// channel is where scripts publish invalidations.
func channel(e *env) string { return e.all.Prefix + keys.Notices }

// Run is called by kong. The end of the context is not an error: that is how watching ends.
func (c *watch) Run(e *env) error {
	if len(c.Page) > 0 || c.Every > 0 {
		return c.sample(e)
	}
	sub := e.rdb.Subscribe(e.ctx, channel(e))
	defer sub.Close()
	unhook := closeAtEnd(e, sub)
	defer unhook()
	for n := 0; ; {
		msg, err := sub.Receive(e.ctx)
		switch {
		case e.ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the subscription to %q: %w", channel(e), err)
		}
		var event seen
		switch msg := msg.(type) {
		case *redis.Subscription:
			event = seen{Event: "subscribed", Name: msg.Channel}
		case *redis.Message:
			if tier.IsRepetition(msg.Payload) {
				continue
			}
			event = read(msg.Payload)
			n++
		default:
			continue
		}
		event.Time = time.Now().UTC().Format(time.RFC3339Nano)
		if err := e.out.print(event); err != nil {
			return err
		}
		if n > 0 && n == c.Count {
			return nil
		}
	}
}

// closeAtEnd closes the subscription when the context ends: go-redis may not look at that while it reads.
func closeAtEnd(e *env, sub *redis.PubSub) (unhook func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() { // owner: Run; stop: over; joined by unhook
		defer close(ended)
		select {
		case <-e.ctx.Done():
			_ = sub.Close() // Receive says so
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

// read reads a message. The names of what is many begin with a letter that says what it is: see internal/cache/tier/notice.go.
func read(payload string) seen {
	notice, ok := tier.ParseNotice(payload)
	name := notice.Key
	switch {
	case !ok:
		return seen{Event: "unknown", Name: payload}
	case !notice.Many:
		cache, _, found := strings.Cut(name, ":")
		if !found {
			cache = ""
		}
		return seen{Event: "invalidated", Name: name, cache: cache}
	case strings.HasPrefix(name, "k"):
		return seen{Event: "invalidated_many", Name: "cache " + name[1:], cache: name[1:]}
	case strings.HasPrefix(name, "t"):
		return seen{Event: "invalidated_many", Name: "tag " + name[1:]}
	}
	return seen{Event: "invalidated_many", Name: name}
}

// Validate is called by kong.
func (c *watch) Validate() error {
	switch {
	case c.Count < 0:
		return errors.New("--count is negative")
	case c.Every != 0 && c.Every < 100*time.Millisecond:
		return errors.New("--every is shorter than 100ms")
	}
	return nil
}
