// Package selfcheck tries everything that a Guard needs of Redis, with keys of its own.
package selfcheck

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/redis/acl"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/redis/send"
	"github.com/cacheguard/go/internal/redis/serverinfo"
	"github.com/cacheguard/go/internal/redis/wake"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// Checks are what a Guard works with.
type Checks struct {
	Redis    script.Processor
	Timeout  time.Duration // of an operation
	Life     *lifecycle.Life
	Keys     protocol.Keyspace
	Inbox    *wake.Inbox
	Link     *send.Link
	Epochs   *epoch.Epochs
	Local    bool     // there is a local tier
	Echoes   bool     // it is only used where scripts may publish
	Channels []string // that the Guard listens to

	Notice     func(key string) string // is the next message that local tiers are to forget the key
	Invalidate func(ctx context.Context, keys, names []string) error
	Lock       func(ctx context.Context, key string) error // takes the lock of an update, and releases it
}

// Report makes all checks, and says to the Logger which server passed, and that no update will be, if something speaks
// against them. Closed is the error of a Guard that is closed meanwhile.
func (c *Checks) Report(ctx context.Context, logger *slog.Logger, noUpdates, closed error) error {
	if noUpdates != nil {
		logger.WarnContext(ctx, "cacheguard: self-check: Update, UpdateMany and Put are refused", "error", noUpdates)
	}
	server, err := c.Run(ctx)
	switch {
	case err == nil:
		logger.InfoContext(ctx, "cacheguard: self-check passed", "server", server)
		return nil
	case errors.Is(err, closed), errors.Is(err, send.ErrClosed):
		return closed
	case server != "":
		return fmt.Errorf("cacheguard: self-check of %s: %w", server, err)
	default:
		return fmt.Errorf("cacheguard: self-check: %w", err)
	}
}

// Run makes all checks, and says which server answers, if that is known. If the Guard is closed meanwhile, the error is
// the cause of that.
func (c *Checks) Run(ctx context.Context) (server string, err error) {
	ctx, cancel := acl.Patiently(ctx)
	defer cancel()
	err = acl.Explain(ctx, c.Life, c.Redis, c.run(ctx))
	found, why := lifecycle.Bounded(ctx, c.Life, c.Timeout, func(ctx context.Context) (serverinfo.Name, error) {
		return serverinfo.Ask(ctx, c.Redis), nil
	})
	if why != nil { // that the user may not know who answers is no failure
		found = serverinfo.Name{Why: why.Error()}
	}
	switch {
	case err == nil:
		return found.String(), found.TooOld()
	case found.Version == "":
		return "", err // nobody needs to know why it is unknown, too
	}
	return found.String(), errors.Join(found.TooOld(), err)
}

func (c *Checks) run(ctx context.Context) error {
	for _, check := range []func(context.Context) error{
		c.rights, c.subscription, c.Messages, c.publishing, c.scripts, c.tagged, c.lock, c.invalidation,
	} {
		if err := check(ctx); err != nil {
			return cmp.Or(context.Cause(c.Life.Ending), err)
		}
	}
	return nil
}

// rights tries the user's rights one by one: some refusals only make a script do less, as they should in an
// emergency, and for the others Redis does not name the command.
func (c *Checks) rights(ctx context.Context) error {
	if err := acl.Guard.Check(ctx, c.Life, c.Redis, c.Keys.Prefix); err != nil {
		return err
	}
	var refused []error
	for _, channel := range c.Channels {
		refused = append(refused, acl.CheckChannel(ctx, c.Life, c.Redis, channel))
	}
	return errors.Join(refused...)
}

func (c *Checks) subscription(ctx context.Context) error {
	c.Inbox.Start()
	for c.Inbox.Address() == "" {
		if _, err := await(ctx, c, time.After(5*time.Millisecond), "cannot subscribe"); err != nil {
			return err
		}
	}
	return nil
}

// await waits for something, until the Guard is closed or ctx ends, without which there is that to say.
func await[T any](ctx context.Context, c *Checks, something <-chan T, without string) (what T, err error) {
	select {
	case what = <-something:
		return what, nil
	case <-c.Life.Ending.Done():
		return what, context.Cause(c.Life.Ending)
	case <-ctx.Done():
		return what, fmt.Errorf("%s: %w", without, ctx.Err())
	}
}

// Messages sends a message as scripts do to wake waiters, and repeats it when it may have been lost with the
// subscription.
func (c *Checks) Messages(ctx context.Context) error {
	key := c.Keys.ValueKey(acl.Name())
	waiter := c.Inbox.Watch(key)
	defer waiter.Stop()
	for {
		waiter.Waiting()
		if err := lifecycle.Within(ctx, c.Life, c.Timeout, func(ctx context.Context) error {
			return script.Send(ctx, c.Redis, "publish", c.Inbox.Address(), wake.Frame(key, "")).Err()
		}); err != nil {
			return fmt.Errorf("cannot send a message: %w", err)
		}
		msg, err := await(ctx, c, waiter.C, "a message did not arrive, which Redis took; the subscription hangs")
		if err != nil || !msg.AskAgain {
			return err
		}
		if err := c.subscription(ctx); err != nil {
			return fmt.Errorf("a message did not arrive: %w", err)
		}
	}
}

// publishing has a script publish a message: what the user may do, a script may not on every server.
func (c *Checks) publishing(ctx context.Context) error {
	if !c.Echoes {
		return nil // each process publishes by itself what is refused
	}
	err := lifecycle.Within(ctx, c.Life, c.Timeout, func(ctx context.Context) error {
		return c.Inbox.Question(c.Keys.ValueKey(acl.Name())).Run(ctx, c.Redis).Err()
	})
	if _, refused := script.Answer(err); refused {
		return fmt.Errorf("the local tier is not used unless Local.MaxLag is -1, as scripts may not PUBLISH on this server: %w", err)
	}
	return err
}

// generation is any one, where a script is to return one.
const generation = "a generation"

// scripts runs each script as calls do, in loads with the three possible ends, and in an update.
func (c *Checks) scripts(ctx context.Context) error {
	key := acl.Name()
	valueKey, token := c.Keys.ValueKey(key), rand.Text()
	acquire := c.Keys.Acquire(valueKey, protocol.Request{Token: token, Take: true})
	head, tail := protocol.EncodeEntry(key, protocol.Entry{Kind: protocol.Raw, Payload: []byte("value")}, token)
	fill := protocol.Filling{Token: token, TTL: acl.Patience, Head: head, Tail: tail}
	for _, step := range []struct {
		name string
		call func() *script.Call
		want any // what the reply is, or begins with
	}{
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"renew", func() *script.Call { r := c.Keys.Renew(valueKey, token); return &r }, int64(1)},
		{"fill", func() *script.Call { return c.Keys.Fill(valueKey, fill) }, "stored"},
		{"acquire a value", func() *script.Call { return acquire }, "value"},
		{"invalidate", func() *script.Call { return c.Keys.Invalidate(valueKey, c.Notice(key)) }, int64(1)},
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"fail", func() *script.Call { return c.Keys.Fail(valueKey, token, "self-check", protocol.LongestFailureMemory) }, int64(1)},
		{"invalidate", func() *script.Call { return c.Keys.Invalidate(valueKey, c.Notice(key)) }, int64(1)}, // the failure
		{"acquire", func() *script.Call { return acquire }, "lease"},
		{"release", func() *script.Call { return c.Keys.Release(valueKey, token) }, int64(1)},
		{"begin_update", func() *script.Call { return c.Keys.BeginUpdate(valueKey, token, c.Notice(key), 0) }, int64(1)},
		{"renew_update", func() *script.Call { r := c.Keys.RenewUpdate(valueKey, token); return &r }, int64(1)},
		{"end_update", func() *script.Call { return c.Keys.EndUpdate(valueKey, token, c.Notice(key), protocol.Filling{}) }, int64(1)},
		{"intend", func() *script.Call { return c.Keys.Intend(valueKey, token, acl.Patience, c.Notice(key)) }, int64(1)},
		{"renew_intend", func() *script.Call { r := c.Keys.RenewIntend(valueKey, token, acl.Patience); return &r }, int64(1)},
		{"done", func() *script.Call { return c.Keys.Done(valueKey, token, c.Notice(key)) }, int64(0)},
		{"begin a put", func() *script.Call { return c.Keys.BeginUpdate(valueKey, token, c.Notice(key), acl.Patience) }, generation},
		{"put", func() *script.Call { return c.Keys.EndUpdate(valueKey, token, c.Notice(key), fill) }, "stored"},
		{"invalidate", func() *script.Call { return c.Keys.Invalidate(valueKey, c.Notice(key)) }, int64(1)},
	} {
		reply, err := lifecycle.Bounded(ctx, c.Life, c.Timeout, func(ctx context.Context) (any, error) {
			return step.call().Run(ctx, c.Redis).Result()
		})
		if err != nil {
			return fmt.Errorf("script %s: %w", step.name, err)
		}
		if list, ok := reply.([]any); ok && len(list) > 0 {
			if reply = list[0]; len(list) > 1 && reply == "lease" {
				fill.Generation, _ = list[1].(string)
			}
		}
		if made, ok := reply.(string); ok && made != "" && step.want == generation {
			reply, fill.Generation = generation, made
		}
		if reply != step.want {
			return fmt.Errorf("script %s: it returned %v instead of %v", step.name, reply, step.want)
		}
	}
	return c.read(ctx, key)
}

// read reads a key as Get does: it was updated, so there is none.
func (c *Checks) read(ctx context.Context, key string) error {
	read, err := c.Link.Get(ctx, c.Keys.ValueKey(key))
	switch {
	case err != nil: // there is no read
	case read.Err != nil:
		err = read.Err
	case read.Raw != nil:
		return errors.New("a value is there after it was removed")
	}
	return wrapped("cannot read a key", err)
}

// wrapped says what failed, if it did.
func wrapped(what string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// tagged makes epochs as a load does, and invalidates a tag.
func (c *Checks) tagged(ctx context.Context) error {
	key := acl.Name()
	epochs := c.Epochs.Begin(key, c.Keys.ValueKey(key), "", nil)
	epochs.Ask(ctx)
	epochs.Prepare(ctx)
	epochs.Ready(ctx)
	if _, err := epochs.Stamp(ctx, nil); err != nil {
		return fmt.Errorf("cannot make an epoch: %w", err)
	}
	return wrapped("cannot invalidate a tag", c.Invalidate(ctx, nil, []string{epoch.OfTag(key)}))
}

// lock takes a lock as Update does.
func (c *Checks) lock(ctx context.Context) error {
	return wrapped("cannot take the lock of an update", c.Lock(ctx, acl.Name()))
}

// invalidation invalidates a key, and waits until the tier has heard of it, if there is one.
func (c *Checks) invalidation(ctx context.Context) error {
	key, arrived := acl.Name(), make(chan struct{}, 1)
	if c.Local {
		l := &wake.Listener{Missed: func(bool) {}, Heard: func(payload string) {
			if n, ok := tier.ParseNotice(payload); ok && n.Key == key && len(arrived) == 0 { // it is the only one that sends
				arrived <- struct{}{}
			}
		}}
		c.Inbox.Listen(c.Keys.Channel, l)
		defer l.Stop()
	}
	if err := c.Invalidate(ctx, []string{key}, nil); err != nil || !c.Local {
		return wrapped("cannot invalidate a key", err)
	}
	_, err := await(ctx, c, arrived, "the message of an invalidation did not arrive")
	return err
}
