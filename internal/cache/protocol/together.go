package protocol

import (
	"slices"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// LockUpdate is BeginUpdate in the step that takes the key's lock: ask is the call that asks for it, and the reply is its reply. With a lasting,
// it is BeginPut, and leaves the GenerationOf the token and the lock's fence.
func (k *Keyspace) LockUpdate(ask script.Call, valueKey, token, notice string, lasting time.Duration) script.Call {
	ms := int64(0)
	if lasting > 0 {
		ms = script.Millis(lasting + k.LeaseTTL)
	}
	return beside(ask, lockUpdateScript, valueKey, token, k.intentMillis(), k.Channel, notice, k.Instance, versionSlotOf(valueKey), ms)
}

// GenerationOf is what Put has to find after LockUpdate.
func GenerationOf(token string, fence int64) string { return token + strconv.FormatInt(fence, 10) }

// UnlockUpdate is EndUpdate in the step that gives up the lock: release is the call that does so, and the reply is its reply.
func (k *Keyspace) UnlockUpdate(release script.Call, valueKey, token, notice string) script.Call {
	return beside(release, unlockUpdateScript, valueKey, token, k.Channel, notice, versionSlotOf(valueKey))
}

// UnlockPut is Put in that step. The lock has been held for that long. Its reply is read by ParseUnlocked.
func (k *Keyspace) UnlockPut(release script.Call, valueKey, token, notice string, held time.Duration, f Filling) script.Call {
	return beside(release, unlockPutScript, valueKey, token, k.Channel, notice, versionSlotOf(valueKey),
		f.Generation, script.Millis(f.TTL), f.Head, f.Tail, idOf(f.Token), idAt, held.Milliseconds())
}

// ParseUnlocked returns the release's part of the reply to UnlockPut, and that of Put.
func ParseUnlocked(cmd *script.Reply) (released int, status string, err error) {
	reply, err := cmd.Slice()
	if err == nil && len(reply) == 2 {
		n, _ := reply[0].(int64)
		status, _ = reply[1].(string)
		released = int(n)
	}
	return released, status, err
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
