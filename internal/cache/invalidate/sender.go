package invalidate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
)

// most bounds one pipeline. Redis takes some 10 µs for each, and other clients come in between.
const most = 1024

// Sender sends invalidations of one sort, of keys or of epochs, and repeats those that failed.
type Sender struct {
	*Writer
	Pending
	Sort
}

// Sort is what the invalidations of a sort have of their own: ofKeys and ofEpochs.
type Sort interface {
	Part(key string) (part int, shown string)          // of the keyspace, and the key as errors have it
	Call(key, notice string) *script.Call              // removes it
	Steps(key, notice string) (steps [][]*script.Call) // do what the call does, one key each
	Notice(key string) string                          // is the next message that local tiers are to forget it
	ForgetLocal(keys []string)                         // makes the local tier forget
}

func (s *Sender) open(w *Writer, of Sort) { s.Writer, s.journal, s.Sort = w, w.Journal, of }

// OpenKeys makes the Sender that of keys. Until then, nothing is pending.
func (s *Sender) OpenKeys(w *Writer, keys *protocol.Keyspace) { s.open(w, ofKeys{w, keys}) }

// ofKeys are invalidations of keys.
type ofKeys struct {
	*Writer

	keys *protocol.Keyspace
}

func (o ofKeys) Part(key string) (part int, shown string) {
	return o.Breakers.Part(o.keys.ValueKey(key)), key
}

func (o ofKeys) Call(key, notice string) *script.Call {
	return o.keys.Invalidate(o.keys.ValueKey(key), notice)
}

func (o ofKeys) Steps(key, notice string) [][]*script.Call {
	return o.keys.InvalidateInSteps(o.keys.ValueKey(key), notice)
}

func (o ofKeys) Notice(key string) string { return o.Notices.Next(o.Part(key)) }

func (o ofKeys) ForgetLocal(keys []string) { o.Local().Forget(keys...) }

// Send sends the invalidations of each part of the keyspace separately, as parts fail separately, and waits for all of them, even if ctx has ended:
// the source has been written, and whether that was told must not depend on the patience of somebody's client. RedisTimeout bounds the wait.
func (s *Sender) Send(ctx context.Context, keys []string) error {
	failed := s.inParts(keys, func(part []string) map[string]error {
		some := s.forgetPart(ctx, "invalidate", part, s.Notice, s.Call)
		s.EnqueueFailed(part, some)
		return some
	})
	all := make([]error, len(keys))
	for i, key := range keys {
		all[i] = failed[key]
	}
	return errs.Join(all...)
}

// byPart groups the keys by their part of the keyspace, without empty parts.
func (s *Sender) byPart(keys []string) [][]string {
	if s.Breakers.Len() == 1 {
		return [][]string{keys}
	}
	parts := make([][]string, s.Breakers.Len())
	for _, key := range keys {
		n, _ := s.Part(key)
		parts[n] = append(parts[n], key)
	}
	return slices.DeleteFunc(parts, func(part []string) bool { return len(part) == 0 })
}

// EnqueueFailed returns the errors of the keys that failed, whose invalidations are pending from now on.
func (s *Sender) EnqueueFailed(keys []string, failed map[string]error) (errs []error) {
	var again []string
	for _, key := range keys {
		if err := failed[key]; err != nil {
			errs = append(errs, err)
			again = append(again, key)
		}
	}
	if len(again) > 0 {
		s.Enqueue(again)
	}
	return errs
}

// Forget runs, for each key, the call that removes it and publishes the notice, in batches for each part of the keyspace, and returns the errors
// by key.
func (s *Sender) Forget(ctx context.Context, op string, keys []string, call func(key, notice string) *script.Call) map[string]error {
	return s.inParts(keys, func(part []string) map[string]error { return s.forgetPart(ctx, op, part, s.Notice, call) })
}

// inParts calls f for the keys of each part at once, and returns all errors.
func (s *Sender) inParts(keys []string, f func(part []string) map[string]error) map[string]error {
	parts := s.byPart(keys)
	failed := make([]map[string]error, len(parts))
	var all sync.WaitGroup
	for n, part := range parts[1:] {
		all.Go(func() { failed[n+1] = f(part) })
	}
	failed[0] = f(parts[0])
	all.Wait()
	for _, more := range failed[1:] {
		maps.Copy(failed[0], more)
	}
	return failed[0]
}

// forgetPart does so for one part. If Redis answers nothing of a batch, the rest is not tried.
func (s *Sender) forgetPart(
	ctx context.Context, op string, keys []string, notice func(key string) string, call func(key, notice string) *script.Call,
) map[string]error {
	failed := make(map[string]error)
	for len(keys) > 0 {
		batch := keys[:min(len(keys), most)]
		some := s.forgetBatch(ctx, op, batch, notice, call)
		maps.Copy(failed, some)
		keys = keys[len(batch):]
		if first := errors.Unwrap(some[batch[0]]); len(some) == len(batch) && breaker.Unavailable(first) {
			for _, key := range keys {
				failed[key] = s.Untold(op, s.shown(key), first)
			}
			break
		}
	}
	return failed
}

func (s *Sender) forgetBatch(
	ctx context.Context, op string, keys []string, notice func(key string) string, call func(key, notice string) *script.Call,
) map[string]error {
	calls, notices := make([]*script.Call, len(keys)), make([]string, len(keys))
	for n, key := range keys {
		notices[n] = notice(key)
		calls[n] = call(key, notices[n])
	}
	defer s.ForgetLocal(keys) // also after an error, as Redis may have removed the key
	cmds, err := s.write(ctx, calls...)
	failed := make(map[string]error)
	for n, key := range keys {
		reason := err
		if err == nil {
			reason = cmds[n].Err()
		}
		if op == "invalidate" && script.Says(reason, "TRYAGAIN") {
			reason = s.despiteMove(ctx, key, notices[n])
		}
		if reason != nil {
			s.Breakers.Failed(reason)
			failed[key] = s.Failed(op, s.shown(key), reason)
		}
	}
	return failed
}

// ForgetOne is Forget for one call, and returns its reply.
func (s *Sender) ForgetOne(ctx context.Context, op, key string, call *script.Call) (*script.Reply, error) {
	defer s.ForgetLocal([]string{key}) // also after an error, as Redis may have removed the key
	cmds, err := s.write(ctx, call)
	if err == nil {
		err = cmds[0].Err()
	}
	if err != nil {
		s.Breakers.Failed(err)
		return nil, s.Failed(op, key, err)
	}
	return cmds[0], nil
}

func (s *Sender) shown(key string) string {
	_, shown := s.Part(key)
	return shown
}

// despiteMove removes what a call should have removed, which Redis refused because the slot is being moved and some of the keys are not
// there. It goes in steps of one key each. An intent that the call should have ended expires.
func (s *Sender) despiteMove(ctx context.Context, key, notice string) error {
	for _, step := range s.Steps(key, notice) {
		cmds, err := s.write(ctx, step...)
		for _, cmd := range cmds {
			err = errs.Join(err, cmd.Err())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Next is the call that removes a key, with a notice of its own.
func (s *Sender) Next(key string) *script.Call { return s.Call(key, s.Notice(key)) }
