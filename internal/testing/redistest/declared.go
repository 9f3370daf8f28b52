package redistest

import (
	"context"
	"crypto/sha1" // the name that Redis gives a script
	_ "embed"
	"encoding/hex"
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
	d := &declaring{first: declared, hashes: make(map[string]string)}
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

//go:embed silent.lua
var silent string

// WithoutPublish lets the scripts that the client sends publish nothing, as servers do on which a message must be in the slot of a script's
// keys. It returns the client.
func WithoutPublish[C interface{ AddHook(hook redis.Hook) }](rdb C) C {
	rdb.AddHook(&declaring{first: silent, hashes: make(map[string]string)})
	return rdb
}

// declaring puts a text before the sources of scripts. It learns them when they are sent.
type declaring struct {
	first string

	mu      sync.Mutex
	hashes  map[string]string // of what is sent, by the source's
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
	d.mu.Lock()
	defer d.mu.Unlock()
	name, _ := args[0].(string)
	text, _ := args[1].(string)
	switch {
	case name == "evalsha":
		if args[1] = d.hashes[text]; args[1] == "" {
			args[1] = strings.Repeat("0", 40) // which no server knows
		}
	case name == "eval" && !strings.Contains(text, d.first):
		flags, rest := "", text
		if strings.HasPrefix(text, "#!") {
			flags, rest, _ = strings.Cut(text, "\n")
			flags += "\n"
		}
		checked := flags + d.first + rest
		args[1], d.hashes[hash(text)] = checked, hash(checked)
	}
}

func hash(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

func (d *declaring) look(err error) {
	if err != nil && strings.Contains(err.Error(), "undeclared key") {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.refused = append(d.refused, err.Error())
	}
}
