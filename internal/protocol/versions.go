package protocol

import (
	"crypto/rand"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/keys"
	"github.com/cacheguard/go/internal/script"
)

// versionTTL is how long a version stays after it was last made or asked for by Version. When it goes, its entries are invalid.
const versionTTL = 30 * 24 * time.Hour

// versionRandom is how many letters of a version are random: the rest is the time, so few will do.
const versionRandom = 10

// TagKey is the key of the version of a tag.
func (k *Keyspace) TagKey(tag string) string {
	if tag == "" { // no caller can have it, but what is in Redis may
		return k.Prefix + ":tag"
	}
	return keys.Tagged(k.Prefix, tag) + ":tag"
}

// AnyTagKey is the key of the version that stands for all tags together.
func (k *Keyspace) AnyTagKey() string { return k.Prefix + ":{any}:tags" }

// RealmKey is one of the keys that the version of a kind can have, or, if the kind is empty, that of all keys; there is one for each number.
func (k *Keyspace) RealmKey(kind string, number int) string {
	if kind == "" {
		return k.Prefix + ":{all" + strconv.Itoa(number) + "}:all"
	}
	return keys.Tagged(k.Prefix, kind+"#"+strconv.Itoa(number)) + ":kind"
}

// Version asks for the version at the key, and makes one if there is none.
func (k *Keyspace) Version(versionKey string) *script.Call {
	return &script.Call{
		Script: versionScript, Keys: []string{versionKey}, Args: []any{rand.Text()[:versionRandom], script.Millis(versionTTL)},
	}
}

// Revoke removes the version at the key, and publishes the notice.
func (k *Keyspace) Revoke(versionKey, notice string) *script.Call {
	return &script.Call{Script: revokeScript, Keys: []string{versionKey}, Args: []any{k.Channel, notice}}
}

// RevokeAnyTag removes the version that stands for all tags together.
func (k *Keyspace) RevokeAnyTag() *script.Call {
	return &script.Call{Script: delCommand, Keys: []string{k.AnyTagKey()}}
}
