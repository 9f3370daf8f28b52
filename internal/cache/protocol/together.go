package protocol

import (
	"slices"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// LockUpdate is BeginUpdate in the step that takes the key's lock: ask is the call that asks for it, and the reply is
// its reply. With a lasting, it leaves the GenerationOf the token and the lock's fence.
func (k *Keyspace) LockUpdate(ask script.Call, valueKey, token, notice string, lasting time.Duration) script.Call {
	return beside(ask, lockUpdateScript, valueKey,
		token, k.intentMillis(), k.Channel, notice, k.Instance, versionSlotOf(valueKey), k.proofMillis(lasting))
}

// GenerationOf is what EndUpdate has to find after LockUpdate.
func GenerationOf(token string, fence int64) string { return token + strconv.FormatInt(fence, 10) }

// UnlockUpdate is EndUpdate in the step that gives up the lock, which has been held for that long: release is the call
// that does so. ParseUnlocked reads the reply.
func (k *Keyspace) UnlockUpdate(release script.Call, valueKey, token, notice string, held time.Duration, f Filling) script.Call {
	args := []any{token, k.Channel, notice, versionSlotOf(valueKey)}
	if f.TTL <= 0 {
		return beside(release, unlockUpdateScript, valueKey, args...)
	}
	return beside(release, unlockPutScript, valueKey, append(append(args, f.put()...), held.Milliseconds())...)
}

// ParseUnlocked returns the release's part of the reply to UnlockUpdate, and what came of the value.
func ParseUnlocked(cmd *script.Reply) (released int, status string, err error) {
	if reply, stored := cmd.Val().([]any); stored && len(reply) == 2 {
		n, _ := reply[0].(int64)
		status, _ = reply[1].(string)
		return int(n), status, nil
	}
	released, err = cmd.Int()
	return released, "", err
}

// beside is the call of a script that does something to a lock, as the call says, and to a value.
func beside(lock script.Call, of *script.Script, valueKey string, args ...any) script.Call {
	return script.Call{
		Script: of,
		Keys:   withAllVersionSlots(valueKey, append(slices.Clip(lock.Keys), IntentKey(valueKey), untilKey(valueKey))...),
		Args:   append(slices.Clip(lock.Args), args...),
	}
}

// versionSlotOf is which of AllVersionSlots the key is, from 1.
func versionSlotOf(valueKey string) (n int) {
	slot := valueKey[len(WithoutVersion(valueKey)):]
	for n = 1; n <= versionSlots && VersionSlot(n-1) != slot; n++ {
	}
	return n
}
