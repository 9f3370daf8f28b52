package protocol

import (
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// Aftermath is for how long the end of an intent that nobody ended is known: longer than any TTL can be late.
const Aftermath = time.Minute

// Intend lets an intent of a transaction stand on the key, for IntentTTL: until then, or until it is done, what is cached lasts no
// longer than it. The intent is any text that no other one has.
func (k *Keyspace) Intend(valueKey, intent, notice string) *script.Call {
	return &script.Call{
		Script: intendScript,
		Keys:   withAllVersionSlots(valueKey, untilKey(valueKey)),
		Args:   []any{intent, k.intentMillis(), script.Millis(Aftermath), k.Channel, notice, writtenAt},
	}
}

// RenewIntend extends it.
func (k *Keyspace) RenewIntend(valueKey, intent string) script.Call {
	return script.Call{
		Script: renewIntendScript,
		Keys:   withAllVersionSlots(valueKey, untilKey(valueKey)),
		Args:   []any{intent, k.intentMillis(), script.Millis(Aftermath)},
	}
}

// Done ends it, and removes the values and leases of all version slots.
func (k *Keyspace) Done(valueKey, intent, notice string) *script.Call {
	return &script.Call{Script: doneScript, Keys: withAllVersionSlots(valueKey, untilKey(valueKey)), Args: []any{intent, k.Channel, notice}}
}

// Replace is Done, and stores the filling, if it has a TTL, its generation is still there and the intent has stood. Else a lease of another generation
// stays. It returns Stored, Refused, or the error of Redis, which refused to store it.
func (k *Keyspace) Replace(valueKey, intent, notice string, f Filling) *script.Call {
	call := k.Done(valueKey, intent, notice)
	call.Script = replaceScript
	call.Args = append(append(append(call.Args, versionSlotOf(valueKey)), f.put()...), maxPushedEntry)
	return call
}

// Withdraw ends an intent, and removes nothing: somebody else's end does.
func Withdraw(valueKey, intent string) *script.Call {
	return &script.Call{Script: zremCommand, Keys: []string{untilKey(valueKey)}, Args: []any{intent}}
}
