package protocol

import (
	"crypto/rand"
	"encoding/base64"
)

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
