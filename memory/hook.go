package memory

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// hook answers commands without a connection. Those whose replies go-redis itself has to read, such as a SUBSCRIBE or a HELLO, go
// to a conn.
type hook struct {
	engine  *engine
	last    *redis.Conn   // see open
	limiter redis.Limiter // nil: there is none
}

// allowed asks whether commands may run now.
func (h *hook) allowed(ctx context.Context) error {
	if err := ctx.Err(); err != nil || h.limiter == nil {
		return err
	}
	return h.limiter.Allow()
}

// report tells the limiter how they went.
func (h *hook) report(err error) {
	if h.limiter != nil {
		h.limiter.ReportResult(err)
	}
}

// DialHook lets the Dialer of open answer.
func (h *hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook answers a command.
func (h *hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !takes(cmd) {
			return next(ctx, cmd)
		}
		if err := h.allowed(ctx); err != nil {
			cmd.SetErr(err)
			return err
		}
		err := h.answer(cmd)
		h.report(err)
		return err
	}
}

// ProcessPipelineHook answers the commands of a pipeline, one after the other, and returns their first error.
func (h *hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) (first error) {
		for _, cmd := range cmds {
			if !takes(cmd) {
				return next(ctx, cmds)
			}
		}
		if err := h.allowed(ctx); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		for _, cmd := range cmds {
			if err := h.answer(cmd); err != nil && first == nil {
				first = err
			}
		}
		h.report(first)
		return first
	}
}

// takes tells whether set can give the command its reply.
func takes(cmd redis.Cmder) bool {
	switch cmd.(type) {
	case interface{ SetVal(val any) }, *redis.StringCmd, *redis.StringSliceCmd, *redis.IntCmd:
		return true
	}
	return false
}

func (h *hook) answer(cmd redis.Cmder) error {
	var err error
	if get, is := cmd.(*redis.StringCmd); is && len(cmd.Args()) == 2 && cmd.Name() == "get" {
		err = h.hit(get)
	} else {
		var args []string
		if args, err = texts(cmd.Args()); err == nil {
			err = set(cmd, h.engine.do(args))
		}
	}
	if err != nil {
		cmd.SetErr(err)
	}
	return err
}

// hit is the way of a GET, of which there are more than of all others together.
func (h *hook) hit(cmd *redis.StringCmd) error {
	key, err := text(cmd.Args()[1])
	if err != nil {
		return err
	}
	value, err := h.engine.get(key)
	if err == nil {
		cmd.SetVal(value)
	}
	return err
}

// set gives a command its reply.
func set(cmd redis.Cmder, reply any) error {
	switch reply := reply.(type) {
	case nil:
		return redis.Nil
	case error:
		return reply
	case int64:
		if cmd, is := cmd.(*redis.IntCmd); is {
			cmd.SetVal(reply)
			return nil
		}
	case string:
		if cmd, is := cmd.(*redis.StringCmd); is {
			cmd.SetVal(reply)
			return nil
		}
	case []any:
		if cmd, is := cmd.(*redis.StringSliceCmd); is {
			all := make([]string, len(reply))
			for i := range reply {
				all[i], _ = reply[i].(string) // nil is as empty to go-redis
			}
			cmd.SetVal(all)
			return nil
		}
	}
	if cmd, is := cmd.(interface{ SetVal(val any) }); is {
		cmd.SetVal(reply)
		return nil
	}
	return fmt.Errorf("memory: the reply %T to %s does not fit %T", reply, cmd.Name(), cmd)
}

// texts are the arguments as they would be sent.
func texts(args []any) (all []string, err error) {
	all = make([]string, len(args))
	for i, arg := range args {
		if all[i], err = text(arg); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func text(arg any) (string, error) {
	switch arg := arg.(type) {
	case string:
		return arg, nil
	case []byte:
		return string(arg), nil
	case int:
		return strconv.Itoa(arg), nil
	case int64:
		return strconv.FormatInt(arg, 10), nil
	case uint64:
		return strconv.FormatUint(arg, 10), nil
	case bool:
		if arg {
			return "1", nil
		}
		return "0", nil
	case float64:
		return strconv.FormatFloat(arg, 'f', -1, 64), nil
	case time.Duration:
		return strconv.FormatInt(arg.Nanoseconds(), 10), nil
	case encoding.BinaryMarshaler:
		raw, err := arg.MarshalBinary()
		return string(raw), err
	case nil:
		return "", nil
	case int8, int16, int32, uint, uint8, uint16, uint32:
		return fmt.Sprint(arg), nil
	}
	return "", fmt.Errorf("memory: cannot send a %T", arg)
}

// errClosed is what go-redis says after Close.
var errClosed = errors.Join(redis.ErrClosed, net.ErrClosed)
