package link

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// usualBeside is how many keys are mostly read beside one: epochs of the Prefix, of a kind and of a tag.
const usualBeside = 3

// ownRequest is room for the request of a read. The reply does not stay in it.
type ownRequest struct {
	args [2 + usualBeside]any
	get  redis.StringCmd
	mget redis.StringSliceCmd
}

// besideOne is a Read with what was read beside it.
type besideOne struct {
	Read
	others beside
}

// readAlone reads the key, and others beside it, on the caller's goroutine; nil: it is to be queued.
func (l *lane) readAlone(ctx context.Context, key string, others []string) *Read {
	if len(others) > 0 && !l.link.mget.Load() {
		return nil
	}
	f, ok := l.beginAlone(ctx, key, false)
	if !ok {
		return nil
	}
	read := &besideOne{Read: Read{key: key}, others: beside{keys: others, first: 1}}
	read.others.replies = f.ask(l.link.own.quick, &read.key, others)
	a := read.others.replies.of(0)
	l.endAlone(f, a.err, len(a.raw))
	if a.err != nil {
		return nil
	}
	read.Raw, read.beside = a.raw, &read.others
	return &read.Read
}

// ask sends the request of a read. Keys travel by their addresses, which saves copies of the strings' headers.
func (f *ownFlight) ask(quick *redis.Client, key *string, others []string) replies {
	r := &f.read
	defer func() { *r = ownRequest{} }()
	if len(others) == 0 {
		r.get = *redis.NewStringCmd(f, append(r.args[:0], "get", key)...) //nolint:gocritic // in the room that there is
		_ = quick.Process(f, onceString{&r.get})                          // the command keeps its error
		return replies{each: []answer{answerOf(&r.get)}}
	}
	args := append(r.args[:0], "mget", key) //nolint:gocritic // as above
	for i := range others {
		args = append(args, &others[i])
	}
	r.mget = *redis.NewStringSliceCmd(f, args...)
	err := quick.Process(f, onceStrings{&r.mget})
	if err == nil && len(r.mget.Val()) != len(args)-1 {
		err = errNotSent // whatever answers so is left to the lane
	}
	return replies{found: r.mget.Val(), err: err}
}

// onceString is a read that is not sent again, as script.Once has it for scripts.
type onceString struct{ *redis.StringCmd }

// NoRetry is asked by go-redis.
func (onceString) NoRetry() bool { return true }

// onceStrings is a read of several keys that is not sent again.
type onceStrings struct{ *redis.StringSliceCmd }

// NoRetry is asked by go-redis.
func (onceStrings) NoRetry() bool { return true }
