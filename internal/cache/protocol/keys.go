package protocol

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

// Keyspace is the part of Redis that the Guards of one prefix share, and the times that they agree on. It does not
// change.
type Keyspace struct {
	Prefix      string
	Instance    string        // the holder of the leases that are acquired
	Channel     string        // scripts publish the notices for local tiers there
	LeaseTTL    time.Duration // how long a load is believed to be alive
	LoadTimeout time.Duration // of a load
}

// ValueKey is the key of the value: P:{K} for key K under prefix P. The lease is at P:{K}:lease, the intent at
// P:{K}:intent, and the lock of an Update at P:{K}:rw and more. In a version slot the value is at P:{K}:vN, and the
// lease at P:{K}:vN:lease.
func (k *Keyspace) ValueKey(key string) string { return keys.Tagged(k.Prefix, key) }

// LeaseKey is the key of the lease beside a value.
func LeaseKey(valueKey string) string { return valueKey + ":lease" }

// IntentKey is the key of the intent beside a value, which is the same for all version slots.
func IntentKey(valueKey string) string { return WithoutVersion(valueKey) + ":intent" }

// errorKey is the key of the text of the failure that a lease remembers.
func errorKey(valueKey string) string { return LeaseKey(valueKey) + ":error" }

// untilKey is the key of the intents of transactions beside a value.
func untilKey(valueKey string) string { return WithoutVersion(valueKey) + ":until" }

// versionSlots is how many versions of a program can have values of one key side by side. The scripts
// rely on it in lua/prelude.lua.
const versionSlots = 4

var versionSlotNames = [versionSlots]string{":v0", ":v1", ":v2", ":v3"}

// VersionSlot is what follows ValueKey in the key of a value of that version of the program; nothing if it has none,
// which is 0.
func VersionSlot(version int) string {
	if version == 0 {
		return ""
	}
	return versionSlotNames[version%versionSlots]
}

// WithoutVersion is the key that a value has without a version.
func WithoutVersion(valueKey string) string { return valueKey[:strings.LastIndexByte(valueKey, '}')+1] }

// AllVersionSlots are the keys that the value can have: first without a version.
func AllVersionSlots(valueKey string) []string {
	return withAllVersionSlots(valueKey)[versionSlots+1:]
}

// withAllVersionSlots are the keys, and then the leases and the values of all version slots in their order: a script
// may touch only keys that it is given. They share one text, as every miss sends them.
func withAllVersionSlots(valueKey string, keys ...string) []string {
	base := WithoutVersion(valueKey)
	var text strings.Builder
	text.Grow((versionSlots + 1) * (len(base) + len(":v0:lease")))
	all := append(make([]string, 0, len(keys)+2*(versionSlots+1)), keys...)
	for version := range versionSlots + 1 {
		begin := text.Len()
		text.WriteString(base)
		text.WriteString(VersionSlot(version))
		text.WriteString(":lease")
		all = append(all, text.String()[begin:])
	}
	for _, lease := range all[len(keys):] {
		all = append(all, strings.TrimSuffix(lease, ":lease"))
	}
	return all
}

// IntentTTL is how long a writer that died keeps others from storing: longer than it keeps them from writing.
func (k *Keyspace) IntentTTL() time.Duration { return 2 * k.LeaseTTL }

func (k *Keyspace) leaseMillis() int64  { return script.Millis(k.LeaseTTL) }
func (k *Keyspace) intentMillis() int64 { return script.Millis(k.IntentTTL()) }

// keepMillis is how long the lease's hash stays after it was last acquired or renewed. It outlives the lease, so that
// a load that lost it can still prove that nothing was written since.
func (k *Keyspace) keepMillis() int64 {
	return script.Millis(max(k.LoadTimeout, time.Minute) + k.LeaseTTL)
}

// A token is text of 128 random bits. One with an origin has the random bits in a shorter form, then a dot, then the
// origin: a token, and a generation that begins with it, are as long as Redis keeps in a small hash (64 bytes). A token
// of the other kind never has a dot.
const (
	randomLen = 22
	maxOrigin = 24
	clockLen  = 16 // of the time in a generation, in microseconds
)

// NewToken makes the token of a load. An origin that is too long is left out.
func NewToken(origin string) string {
	if origin == "" || len(origin) > maxOrigin {
		return rand.Text()
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:]) + "." + origin
}

// Origin returns the origin of the load whose token or generation a reply has; empty if it has none. It may be
// anything.
func (a Acquired) Origin() string {
	token := a.Failed
	if a.Status == Held {
		token = a.Generation[:max(0, len(a.Generation)-clockLen)]
	}
	if len(token) <= randomLen || token[randomLen] != '.' {
		return ""
	}
	return token[randomLen+1:]
}
