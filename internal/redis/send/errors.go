package send

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
)

// said reports whether an error, or none, is Redis' answer.
func said(err error) bool {
	_, answered := script.Answer(err)
	return answered || err == nil
}

// known reports whether a call with this error is known to have run, or to be refused for good: Redis does not say that
// it cannot answer now.
func known(err error) bool {
	return said(err) && !script.Says(err, "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "BUSY ")
}

// settled is known for a call that gives something up. Redis does not refuse it for good when it takes no writes: a
// caller that asks for something wants to hear of that, and one that gives it up has it until it can.
func settled(err error) bool {
	return known(err) && !script.Says(err, "OOM", "NOREPLICAS", "MISCONF")
}

// Again reports whether a call with this error is worth asking again soon. One without any answer in time is not.
func Again(err error) bool {
	over := []error{context.Canceled, context.DeadlineExceeded, breaker.ErrOpen, ErrClosed}
	return !known(err) && !slices.ContainsFunc(over, func(end error) bool { return errors.Is(err, end) })
}

// moved reports whether a node does not serve a key, or not yet, and others may.
func moved(err error) bool {
	return script.Says(err, "MOVED ", "ASK ", "TRYAGAIN", "READONLY", "CLUSTERDOWN")
}

// sentAgain reports whether the client sends a command again after this error, but no pipeline: of a slot that
// moves or has moved, or that nobody serves for a moment, or of a primary that is one no more, or has no replicas yet.
func sentAgain(err error) bool { return moved(err) || script.Says(err, "NOREPLICAS") }

// paused reports whether the client pauses and asks again after this error, or connects again, or was refused a
// connection.
func paused(err error) bool {
	return err != nil && (sentAgain(err) || script.Refused(err))
}

// brokenConnection reports whether a connection ended, or could not be made, before its replies came.
func brokenConnection(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op) && !op.Timeout()
}

// written reports whether a call with this error may have been sent.
func written(err error) bool {
	var op *net.OpError
	dialed := errors.As(err, &op) && op.Op == "dial"
	return !dialed && !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrClosed)
}
