package keys

import (
	"crypto/rand"
	"strings"
)

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
