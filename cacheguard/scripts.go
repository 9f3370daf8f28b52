package cacheguard

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/script"
)

//go:embed lua/prelude.lua
var prelude string

//go:embed lua/acquire_common.lua
var acquireCommon string

//go:embed lua/acquire.lua
var acquireSource string

//go:embed lua/fill_lone.lua
var fillLone string

//go:embed lua/fill.lua
var fillSource string

//go:embed lua/fail.lua
var failSource string

//go:embed lua/release.lua
var releaseSource string

//go:embed lua/renew.lua
var renewSource string

//go:embed lua/invalidate.lua
var invalidateSource string

//go:embed lua/begin_update.lua
var beginUpdateSource string

//go:embed lua/end_update.lua
var endUpdateSource string

//go:embed lua/renew_update.lua
var renewUpdateSource string

//go:embed lua/time.lua
var timeSource string

var (
	acquireScript    = script.New(acquireCommon + prelude + acquireSource)
	fillScript       = script.New(fillLone + prelude + fillSource)
	failScript       = script.New(prelude + failSource)
	releaseScript    = script.New(prelude + releaseSource)
	renewScript      = script.New(prelude + renewSource)
	invalidateScript = script.New(prelude + invalidateSource)

	beginUpdateScript = script.New(prelude + beginUpdateSource)
	endUpdateScript   = script.New(prelude + endUpdateSource)
	renewUpdateScript = script.New(prelude + renewUpdateSource)

	timeScript = script.New(prelude + timeSource)

	existsCommand = script.Command("exists")
)

const (
	firstFailureMemory   = 50 * time.Millisecond
	longestFailureMemory = 5 * time.Second
	maxErrorText         = 1 << 10
	maxPushedEntry       = 4<<10 + headerLen
)

// acquired is the reply of acquire.
type acquired struct {
	status     string        // value, lease, free, held, writing or failed
	value      []byte        // value: the entry
	freshAt    int64         // value: that of the request's unfit, which is fresh, as the server's clock shows so many ms; 0: another
	generation string        // lease, held: of the lease; writing: of the message at its end
	takenOver  bool          // lease: from a holder that let it expire
	left       time.Duration // held, writing: until it expires; failed: until a load may be tried again
	registered bool          // held, writing: the holder will publish to the inbox
	failed     string        // failed: the token of the load that failed
	message    string        // failed: the text of its error
}

// request is what acquire asks for.
type request struct {
	token string
	take  bool   // the lease, if it is free
	inbox string // to register; empty for none
	unfit []byte // the value that the caller has and cannot use; nil if none
	aged  bool   // it seems to be too old
}

// look is the call that asks how many of the value, the lease and the intent are there.
func (m *missed) look() *script.Call {
	return &script.Call{Script: existsCommand, Keys: []string{m.valueKey, leaseKey(m.valueKey), intentKey(m.valueKey)}}
}

// acquire is the call that asks for the value, or the lease to load it.
func (m *missed) acquire(r request) *script.Call {
	lease := int64(0)
	if r.take {
		lease = m.leaseMillis()
	}
	args := []any{r.token, lease, m.keepMillis(), r.inbox}
	if r.unfit != nil {
		aged := 0
		if r.aged {
			aged = writtenAt + 1 // Lua counts from 1
		}
		args = append(args, r.unfit[:min(len(r.unfit), headerLen)], headerLen, aged)
	}
	return &script.Call{
		Script: acquireScript,
		Keys:   []string{m.valueKey, leaseKey(m.valueKey), intentKey(m.valueKey)},
		Args:   args,
	}
}

func parseAcquired(cmd *redis.Cmd) (a acquired, err error) {
	reply, err := cmd.Slice()
	if err != nil {
		return a, err
	}
	field := func(i int) string {
		if i < len(reply) {
			s, _ := reply[i].(string)
			return s
		}
		return ""
	}
	number := func(i int) int64 {
		if i < len(reply) {
			n, _ := reply[i].(int64)
			return n
		}
		return 0
	}
	switch a.status = field(0); a.status {
	case "value":
		a.value, a.freshAt = []byte(field(1)), number(2)
	case "lease":
		a.generation, a.takenOver = field(1), number(2) == 1
	case "free":
	case "held", "writing":
		a.generation, a.left = field(1), time.Duration(number(2))*time.Millisecond
		a.registered = number(3) == 1
	case "failed":
		a.failed, a.message, a.left = field(1), field(2), time.Duration(number(3))*time.Millisecond
	default:
		err = fmt.Errorf("unexpected reply %q", a.status)
	}
	return a, err
}

// filling is what fill stores.
type filling struct {
	token, generation string
	ttl               time.Duration // of the key in Redis; 0: do not store
	head              string
	tail              []byte // nil: there is nothing to store or to hand over
}

// fill is the call that stores what a load returned and ends its lease. It returns stored, kept, refused, or why Redis did not
// store it.
func (m *missed) fill(f filling) *script.Call {
	return &script.Call{
		Script: fillScript,
		Keys:   []string{m.valueKey, leaseKey(m.valueKey)},
		Args:   []any{f.generation, script.Millis(f.ttl), f.head, f.tail, f.token[:idLen], idAt, maxPushedEntry},
	}
}

// fail is the call that ends the lease of a load that failed, and has the failure remembered.
func (m *missed) fail(message string) *script.Call {
	return &script.Call{
		Script: failScript,
		Keys:   []string{leaseKey(m.valueKey)},
		Args: []any{
			m.token, message[:min(len(message), maxErrorText)],
			script.Millis(firstFailureMemory), script.Millis(longestFailureMemory), 1 - rand.Float64()/2,
		},
	}
}

// release is the call that gives a lease up.
func (m *missed) release() *script.Call {
	return &script.Call{Script: releaseScript, Keys: []string{leaseKey(m.valueKey)}, Args: []any{m.token}}
}

// renewal is the call with which the keeper renews a lease.
func (m *missed) renewal() script.Call {
	return script.Call{
		Script: renewScript,
		Keys:   []string{leaseKey(m.valueKey)},
		Args:   []any{m.token, m.leaseMillis(), m.keepMillis()},
	}
}

// updating is the call that announces a writer of the key.
func (g *Guard) updating(key, token string) *script.Call {
	valueKey := g.redisKey(key)
	return &script.Call{
		Script: beginUpdateScript,
		Keys:   []string{valueKey, leaseKey(valueKey), intentKey(valueKey)},
		Args:   []any{token, g.intentMillis(), g.notices.channel, g.notice(key)},
	}
}

// stillUpdating is the call with which the keeper renews a writer's intent.
func (g *Guard) stillUpdating(key, token string) script.Call {
	return script.Call{
		Script: renewUpdateScript, Keys: []string{intentKey(g.redisKey(key))}, Args: []any{token, g.intentMillis()},
	}
}

// updated is the call that ends what updating began.
func (g *Guard) updated(key, token string) *script.Call {
	valueKey := g.redisKey(key)
	return &script.Call{
		Script: endUpdateScript,
		Keys:   []string{valueKey, leaseKey(valueKey), intentKey(valueKey)},
		Args:   []any{token, g.notices.channel, g.notice(key)},
	}
}

// invalidation is the call that removes a key.
func (g *Guard) invalidation(key string) *script.Call { return g.invalidationWith(key, g.notice(key)) }

// owedInvalidation is that of a key that is owed.
func (g *Guard) owedInvalidation(key string) *script.Call {
	return g.invalidationWith(key, g.owed.noticeOf(key))
}

func (g *Guard) invalidationWith(key, notice string) *script.Call {
	valueKey := g.redisKey(key)
	return &script.Call{
		Script: invalidateScript,
		Keys:   []string{valueKey, leaseKey(valueKey)},
		Args:   []any{g.notices.channel, notice},
	}
}

// notice is the next message to local tiers, that the key is to be forgotten.
func (g *Guard) notice(key string) string { return g.notices.next(g.health.Part(g.redisKey(key)), key) }

func (g *Guard) leaseMillis() int64  { return script.Millis(g.cfg.LeaseTTL) }
func (g *Guard) intentMillis() int64 { return script.Millis(g.intentTTL()) }

// keepMillis is how long the lease's hash stays after it was last acquired or renewed. It outlives the lease, so that
// a load that lost it can still prove that nothing was written since.
func (g *Guard) keepMillis() int64 {
	return script.Millis(max(g.cfg.LoadTimeout, time.Minute) + g.cfg.LeaseTTL)
}
