package protocol

import (
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

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
