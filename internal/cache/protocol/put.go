package protocol

import (
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// BeginPut is BeginUpdate for an update whose value Put is to store. It returns a generation, which Put has to find. Lasting
// is how long the update may take; a longer one stores nothing.
func (k *Keyspace) BeginPut(valueKey, token, notice string, lasting time.Duration) *script.Call {
	call := k.BeginUpdate(valueKey, token, notice)
	call.Args = append(call.Args, script.Millis(lasting+k.LeaseTTL))
	return call
}

// Put ends what BeginPut began, and stores the value. It returns Stored, Refused, or the error of Redis, which refused to
// store it. The filling has a TTL and a tail.
func (k *Keyspace) Put(valueKey, token, notice string, f Filling) *script.Call {
	call := k.EndUpdate(valueKey, token, notice)
	call.Script = putScript
	call.Args = append(call.Args, versionSlotOf(valueKey), f.Generation, script.Millis(f.TTL), f.Head, f.Tail, idOf(f.Token), idAt)
	return call
}
