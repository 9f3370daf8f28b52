package cacheguard

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/lifecycle"
	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/script"
)

// inspectSeats returns what Redis has for the key, without a version and in each seat, in one request.
func (i *Inspection) inspectSeats(ctx context.Context, g *Guard) error {
	var calls []*script.Call
	for _, valueKey := range protocol.AllSeats(g.keys.ValueKey(i.Key)) {
		calls = append(calls, g.keys.Inspect(valueKey))
	}
	all, err := lifecycle.Bounded(ctx, g.life, g.cfg.RedisTimeout, func(ctx context.Context) ([]protocol.Inspected, error) {
		return parseAll(script.RunAll(ctx, g.rdb, calls))
	}, nil)
	if err != nil {
		return err
	}
	for n := range all {
		of := Inspection{Key: i.Key, State: EntryMissing}
		if n == 0 {
			of = *i
		}
		stamp := of.readEntry(&all[n])
		of.readHolders(&all[n])
		if err := of.confirm(ctx, g, stamp); err != nil {
			return err
		}
		switch {
		case n == 0:
			*i = of
		case of.isThere():
			of.Key, of.Writers, of.Blocked, of.Intents = "", nil, 0, nil
			i.Versions = append(i.Versions, of)
		}
	}
	return nil
}

// isThere reports whether there is an entry, a load or a failure.
func (i *Inspection) isThere() bool {
	return i.State != EntryMissing || i.Load != nil || i.Failure != nil
}

func parseAll(cmds []*redis.Cmd) ([]protocol.Inspected, error) {
	all := make([]protocol.Inspected, len(cmds))
	for n, cmd := range cmds {
		var err error
		if all[n], err = protocol.ParseInspected(cmd); err != nil {
			return nil, err
		}
	}
	return all, nil
}
