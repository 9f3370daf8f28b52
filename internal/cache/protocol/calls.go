package protocol

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

const (
	firstFailureMemory = 50 * time.Millisecond
	polledMemory       = time.Second // at least, when somebody polls: longer than they pause

	// MaxPushed is how many bytes the entry in a message has at most.
	MaxPushed = 4<<10 + HeaderLen

	// LongestFailureMemory is how long Redis remembers a failure at most.
	LongestFailureMemory = 5 * time.Second
)

// Filling is what Fill stores.
type Filling struct {
	Token, Generation string
	TTL               time.Duration // of the key in Redis; 0: do not store
	Head              string        // of the entry, see EncodeEntry
	Tail              []byte        // nil: there is nothing to store or to hand over
}

// The replies of Fill. Another reply is the error of Redis, which refused to store the value.
const (
	Stored  = "stored"
	Kept    = "kept"    // the value is valid, and its TTL says that it is not to be stored
	Refused = "refused" // something was stored or invalidated since the lease was acquired
)

// Fill stores what a load returned, and ends its lease.
func (k *Keyspace) Fill(valueKey string, f Filling) *script.Call {
	return &script.Call{
		Script: fillScript,
		Keys:   []string{valueKey, LeaseKey(valueKey), untilKey(valueKey)},
		Args:   []any{f.Generation, script.Millis(f.TTL), f.Head, f.Tail, idOf(f.Token), idAt, MaxPushed, f.Token, script.Millis(LongestFailureMemory)},
	}
}

// Fail ends the lease of a load that failed, and has the failure remembered, for at most that long.
func (k *Keyspace) Fail(valueKey, token, message string, longest time.Duration) *script.Call {
	return &script.Call{
		Script: failScript,
		Keys:   []string{LeaseKey(valueKey), errorKey(valueKey)},
		Args: []any{
			token, message, script.Millis(firstFailureMemory), script.Millis(longest), 1 - rand.Float64()/2, script.Millis(polledMemory),
		},
	}
}

// Release gives a lease up.
func (k *Keyspace) Release(valueKey, token string) *script.Call {
	return &script.Call{Script: releaseScript, Keys: []string{LeaseKey(valueKey)}, Args: []any{token}}
}

// Renew extends a lease.
func (k *Keyspace) Renew(valueKey, token string) script.Call {
	return script.Call{
		Script: renewScript,
		Keys:   []string{LeaseKey(valueKey), untilKey(valueKey)},
		Args:   []any{token, k.leaseMillis(), k.keepMillis()},
	}
}

// BeginUpdate announces a writer of the key: it removes the values and leases of all version slots, and leaves an
// intent. With a lasting, it returns a generation, which EndUpdate has to find to store a value: lasting is how long
// the update may take; a longer one stores nothing.
func (k *Keyspace) BeginUpdate(valueKey, token, notice string, lasting time.Duration) *script.Call {
	call := &script.Call{
		Script: beginUpdateScript,
		Keys:   withAllVersionSlots(valueKey, IntentKey(valueKey), untilKey(valueKey)),
		Args:   []any{token, k.intentMillis(), k.Channel, notice, k.Instance, versionSlotOf(valueKey)},
	}
	if lasting > 0 {
		call.Args = append(call.Args, k.proofMillis(lasting))
	}
	return call
}

// proofMillis is for how long the proof of an update is kept; 0: there is none.
func (k *Keyspace) proofMillis(lasting time.Duration) int64 {
	if lasting <= 0 {
		return 0
	}
	return script.Millis(lasting + k.LeaseTTL)
}

// RenewUpdate extends a writer's intent.
func (k *Keyspace) RenewUpdate(valueKey, token string) script.Call {
	return script.Call{Script: renewUpdateScript, Keys: []string{IntentKey(valueKey)}, Args: []any{token, k.intentMillis()}}
}

// EndUpdate ends what BeginUpdate began: it removes all values and leases once more, and the intent. If the filling has
// a TTL, and a tail, it stores the value, and returns Stored, Refused, or the error of Redis, which refused to store
// it.
func (k *Keyspace) EndUpdate(valueKey, token, notice string, f Filling) *script.Call {
	call := &script.Call{
		Script: endUpdateScript,
		Keys:   withAllVersionSlots(valueKey, IntentKey(valueKey), untilKey(valueKey)),
		Args:   []any{token, k.Channel, notice},
	}
	if f.TTL > 0 {
		call.Script = putScript
		call.Args = append(append(call.Args, versionSlotOf(valueKey)), f.put()...)
	}
	return call
}

// put are the arguments of scripts that store what an update wrote.
func (f Filling) put() []any {
	return []any{f.Generation, script.Millis(f.TTL), f.Head, f.Tail, idOf(f.Token), idAt}
}

// Invalidate removes the values and the leases of all version slots, and publishes the notice.
func (k *Keyspace) Invalidate(valueKey, notice string) *script.Call {
	return &script.Call{
		Script: invalidateScript,
		Keys:   withAllVersionSlots(valueKey),
		Args:   []any{k.Channel, notice},
	}
}

// DropLarge removes the value if it has more than that many bytes.
func (k *Keyspace) DropLarge(valueKey string, bytes int) *script.Call {
	return &script.Call{Script: dropLargeScript, Keys: []string{valueKey}, Args: []any{bytes}}
}

// InvalidateInSteps does what Invalidate does, with commands of one key each, for the time in which the slot of the
// keys is moved to another node. The steps are to be taken one after the other: no load that began before may store
// once the leases are gone, and values are removed after them. Callers that wait for a load are not woken, but ask
// again by themselves.
func (k *Keyspace) InvalidateInSteps(valueKey, notice string) [][]*script.Call {
	var leases, values []*script.Call
	for _, key := range AllVersionSlots(valueKey) {
		leases, values = append(leases, Delete(LeaseKey(key))), append(values, Delete(key))
	}
	return [][]*script.Call{leases, values, {Publish(k.Channel, notice)}}
}

// Delete removes a key, without a script.
func Delete(key string) *script.Call { return &script.Call{Script: delCommand, Keys: []string{key}} }

// Publish publishes a message, without a script.
func Publish(channel, message string) *script.Call {
	return &script.Call{Script: publishCommand, Keys: []string{channel}, Args: []any{message}}
}

// Time asks for the clock of the server that has the key, in ms.
func (k *Keyspace) Time(valueKey string) *script.Call {
	return &script.Call{Script: timeScript, Keys: []string{valueKey}}
}

// Say publishes a message to local tiers, at the node that has the key.
func (k *Keyspace) Say(key, message string) *script.Call {
	return &script.Call{Script: sayScript, Keys: []string{key}, Args: []any{k.Channel, message}}
}

// Push says how a lease, or an update, ended, in the message that a script sends to those who wait for its end.
type Push byte

// The words of messages.
const (
	PushedValue    Push = 'v' // a value was loaded and stored; it follows
	PushedKept     Push = 'k' // it is not stored
	PushedFailure  Push = 'f' // the load failed; the error's text follows
	PushedUnstored Push = 'p' // a value was loaded that cannot be stored: everyone has to load it
	PushedAskAgain Push = 'g' // it left nothing to hand over: ask Redis again
)

// ParsePush splits the body of a message. Not ok: it does not speak of this generation.
func ParsePush(body, generation string) (what Push, rest string, ok bool) {
	if len(body) <= len(generation) || body[1:1+len(generation)] != generation {
		return 0, "", false
	}
	return Push(body[0]), body[1+len(generation):], true
}

// Inspect looks at all that there is of a key. Package inspect reads the reply.
func (k *Keyspace) Inspect(valueKey string) *script.Call {
	return &script.Call{Script: inspectScript, Args: []any{InspectedLen}, Keys: []string{
		valueKey, LeaseKey(valueKey), IntentKey(valueKey), untilKey(valueKey), errorKey(valueKey),
	}}
}

// InspectedLen is how much of an entry is looked at: more than what comes before any payload.
const InspectedLen = 64 << 10

// DecodeBeginning decodes what there is of an entry of the user's key that is longer than what was looked at: it has no
// whole payload, and whether that is intact is not known.
func DecodeBeginning(key string, beginning []byte) (Entry, error) {
	head := bytes.Clone(beginning)
	binary.BigEndian.PutUint32(head[sumAt:], checksum(key, head)) // of what there is
	return DecodeEntry(key, head)
}

// Aftermath is for how long the end of an intent that nobody ended is known: longer than any TTL can be late.
const Aftermath = time.Minute

// Intend lets an intent of a transaction stand on the key, for as long as lasting: until then, or until it is done,
// what is cached lasts no longer than it. The intent is any text that no other one has.
func (k *Keyspace) Intend(valueKey, intent string, lasting time.Duration, notice string) *script.Call {
	return &script.Call{
		Script: intendScript,
		Keys:   withAllVersionSlots(valueKey, untilKey(valueKey)),
		Args:   []any{intent, script.Millis(lasting), script.Millis(Aftermath), k.Channel, notice, writtenAt},
	}
}

// RenewIntend extends it.
func (k *Keyspace) RenewIntend(valueKey, intent string, lasting time.Duration) script.Call {
	call := script.Call{
		Script: renewIntendScript,
		Keys:   withAllVersionSlots(valueKey, untilKey(valueKey)),
		Args:   []any{intent, script.Millis(lasting), script.Millis(Aftermath)},
	}
	call.Alone = &script.Call{Script: call.Script, Keys: call.Keys[:1], Args: call.Args}
	return call
}

// Done ends it, and removes the values and leases of all version slots.
func (k *Keyspace) Done(valueKey, intent, notice string) *script.Call {
	return &script.Call{Script: doneScript, Keys: withAllVersionSlots(valueKey, untilKey(valueKey)), Args: []any{intent, k.Channel, notice}}
}

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
