package cacheguard

import "sync/atomic"

// detours are the reasons why calls may not go to the cache, in one word, so that a hit checks only one.
type detours struct{ set atomic.Uint32 }

const (
	owedKeys     uint32 = 1 << iota // invalidations of some keys are pending
	bypassing                       // see Bypass
	lookDue                         // it is time to see whether the fleet bypasses
	withoutRedis                    // Config.Disabled
	intending                       // intents stand, within which calls may have to read past the cache
)

func (d *detours) none() bool           { return d.set.Load() == 0 }
func (d *detours) has(what uint32) bool { return d.set.Load()&what != 0 }

// put sets or clears a reason. Nil detours are fine: then nobody looks.
func (d *detours) put(what uint32, is bool) {
	switch {
	case d == nil:
	case is:
		d.set.Or(what)
	default:
		d.set.And(^what)
	}
}

// mustBypass returns why the key must not be read; nil if it may be.
func (g *Guard) mustBypass(key string) *RedisError {
	if g.detours.none() {
		return nil
	}
	return g.detour(key)
}

func (g *Guard) detour(key string) *RedisError {
	if g.detours.has(withoutRedis) {
		return &RedisError{Op: "get", Key: key, Err: errDisabled}
	}
	if g.detours.has(lookDue) {
		g.bypass.lookLater()
	}
	if g.detours.has(bypassing) {
		return &RedisError{Op: "get", Key: key, Err: errBypassed}
	}
	if g.invalidations.pending.has(key) {
		return &RedisError{Op: "get", Key: key, Err: errPending}
	}
	return nil
}
