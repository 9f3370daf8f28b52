// Package keys names keys in Redis so that all keys of one name share a cluster slot.
package keys

import (
	"crypto/rand"
	"strings"
)

// Behind a prefix, the channels that scripts publish on: notices of invalidations for local tiers, and before a random
// text, messages for the waiters of a process.
const (
	Notices = ":invalidated"
	Inboxes = ":inbox:"
)

// Tagged returns prefix:{name}. The caller may append to it. Keys that begin alike up to the brace that ends the hash
// tag share a cluster slot, whatever braces the name has. There is one exception: a name that begins with a closing
// brace would make the tag empty, and the whole key would count. So it gets a backslash in front, and so that no two
// keys collide, does one that begins with a backslash. The prefix has no braces, and the name is not empty.
func Tagged(prefix, name string) string {
	if name[0] == '}' || name[0] == '\\' {
		return prefix + `:{\` + name + "}"
	}
	return prefix + ":{" + name + "}"
}

// Slots is how many hash slots a cluster has.
const Slots = 16384

// Slot is the cluster's hash slot of a key: the CRC-16 (XMODEM) of its hash tag, if it has one, else of all of it.
// After the Redis Cluster specification.
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc % Slots)
}

// crcTable has the CRC of each byte, for the polynomial x^16 + x^12 + x^5 + 1.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

const (
	tokenLen = 26 // 130 random bits
	alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// NewToken is random text that identifies a holder. If the instance has a name, that is behind it and an @.
func NewToken(instance string) string {
	if instance == "" {
		return rand.Text()
	}
	token := make([]byte, tokenLen, tokenLen+1+len(instance))
	_, _ = rand.Read(token) // never fails
	for i, b := range token {
		token[i] = alphabet[b%byte(len(alphabet))]
	}
	return string(append(append(token, '@'), instance...))
}

// InstanceOf is the instance whose token it is; empty: it does not say.
func InstanceOf(token string) string {
	_, instance, _ := strings.Cut(token, "@")
	return instance
}
