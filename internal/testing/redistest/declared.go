package redistest

import (
	"context"
	_ "embed"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

//go:embed declared.lua
var declared string

// DeclaredKeys makes the test fail when a script that the client sends touches a key that is not in its KEYS, and ends
// that script. It returns the client.
func DeclaredKeys[C interface{ AddHook(hook redis.Hook) }](tb testing.TB, rdb C) C {
	tb.Helper()
	d := &declaring{prefixed: prefixed{first: declared}}
	tb.Cleanup(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, text := range d.refused {
			tb.Error(text)
		}
	})
	rdb.AddHook(d)
	return rdb
}

//go:embed refusing.lua
var refusing string

// What comes before the source of a script where it may publish nothing, or only to channels in the slot of its keys.
func silent() string { return "local in_slot = false\n" + refusing }
func inSlot() string { return "local in_slot = true\n" + refusing }

// WithoutPublish lets the scripts that the client sends publish nothing, as servers do on which a message must be in the slot of a script's
// keys. It returns the client.
func WithoutPublish[C interface{ AddHook(hook redis.Hook) }](rdb C) C {
	rdb.AddHook(&declaring{prefixed: prefixed{first: silent()}})
	return rdb
}

// declaring puts a text before the sources of scripts that a client sends.
type declaring struct {
	prefixed

	mu      sync.Mutex
	refused []string
}

func (*declaring) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *declaring) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		d.rewrite(cmd)
		err := next(ctx, cmd)
		d.look(err) // the command does not have it yet
		return err
	}
}

func (d *declaring) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			d.rewrite(cmd)
		}
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			d.look(cmd.Err())
		}
		return err
	}
}

func (d *declaring) rewrite(cmd redis.Cmder) {
	args := cmd.Args()
	if len(args) < 3 {
		return
	}
	name, _ := args[0].(string)
	if text, is := args[1].(string); is {
		args[1] = d.script(name, text)
	}
}

func (d *declaring) look(err error) {
	if err != nil && strings.Contains(err.Error(), "undeclared key") {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.refused = append(d.refused, err.Error())
	}
}
