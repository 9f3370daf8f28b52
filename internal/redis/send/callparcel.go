package send

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/goredis"
	"github.com/cacheguard/go/internal/redis/script"
)

// calls are a parcel of calls.
type calls struct {
	all     []*queuedCall
	cmds    []*redis.Cmd
	carried operation
	once    bool     // the client sends it once, where it would try again
	room    struct { // of the only call, mostly
		all  [1]*queuedCall
		cmds [1]*redis.Cmd
	}
}

func newCalls() *calls {
	p := new(calls)
	p.all = p.room.all[:0]
	return p
}

func (p *calls) longer() time.Duration { return forMore(len(p.all)) }

func (p *calls) under(ends context.Context) context.Context {
	p.carried = operation{ends, p.all[0].ctx}
	return &p.carried
}

func (p *calls) carry(ctx context.Context) outcome {
	lane := p.all[0].lane
	l := lane.link
	alone, piped := l.alone, l.piped
	if p.once = lane.noWrites.goOn() && !p.all[0].alone; p.once {
		alone, piped = script.Once(l.alone), script.OncePipeliner(l.piped)
	}
	switch {
	case lane.replicas > 0:
		p.cmds = lane.acknowledged(ctx, p.scripts())
	case lane.apart && len(p.all) == 1: // a cluster client does not follow a DEL by itself to where its key has moved
		p.cmds = script.RunAll(ctx, l.rdb, p.scripts())
	case len(p.all) == 1:
		p.cmds = append(p.room.cmds[:0], p.all[0].Script.Run(ctx, alone))
	default:
		p.cmds = script.RunAll(ctx, piped, p.scripts())
	}
	o := outcome{err: context.Canceled} // which the breaker does not count: all of it is sent again
	for _, cmd := range p.cmds {
		err := cmd.Err()
		o.note(l, err)
		lane.noWrites.note(err)
		if moved(err) {
			goredis.Reload(l.rdb)
		}
		if o.err != nil && !p.broken(err) {
			o.err = err
		}
	}
	return o
}

func (p *calls) scripts() []*script.Call {
	all := make([]*script.Call, len(p.all))
	for i, c := range p.all {
		all[i] = c.Script
	}
	return all
}

// broken reports whether a parcel ended with its connection, and the client, which sent it only once, has left it so.
func (p *calls) broken(err error) bool {
	return (p.once || len(p.all) > 1 && p.all[0].lane.link.once) && brokenConnection(err)
}

// deliver sends again, alone, what only a pipeline is refused.
func (p *calls) deliver() {
	for i, c := range p.all {
		cmd := p.cmds[i]
		c.Trail.end(cmd.Err())
		if broken := p.broken(cmd.Err()); !c.Single && (broken || len(p.all) > 1 && sentAgain(cmd.Err()) && !(writesRefused(cmd.Err()) && (p.once || c.lane.noWrites.goOn()))) {
			c.again(broken)
			continue
		}
		if !c.answer(cmd, cmd.Err()) {
			c.late(cmd, cmd.Err())
		}
	}
}

// fail answers calls that were not sent, or whose reply did not come in time. That will be late, then.
func (p *calls) fail(err error) {
	for _, c := range p.all {
		if c.sent {
			c.Trail.end(err)
		}
		c.answer(nil, err)
		if !c.sent {
			c.unanswered(err)
		}
	}
}

func (p *calls) late() {
	for i, c := range p.all {
		c.late(p.cmds[i], p.cmds[i].Err())
	}
}
