package redistest

import (
	"crypto/sha1" // the name that Redis gives a script
	"encoding/hex"
	"strings"
	"sync"
)

// prefixed puts a text before the sources of scripts. It learns them when they are sent, and knows them by their own hashes.
type prefixed struct {
	first string

	mu     sync.Mutex
	hashes map[string]string // of what is sent, by the source's
}

// script is what is sent in place of the source or hash that a command has.
func (p *prefixed) script(command, text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case command == "evalsha":
		if sent := p.hashes[text]; sent != "" {
			return sent
		}
		return strings.Repeat("0", 40) // which no server knows
	case command == "eval" && !strings.Contains(text, p.first):
		if p.hashes == nil {
			p.hashes = make(map[string]string)
		}
		flags, rest := "", text
		if strings.HasPrefix(text, "#!") {
			flags, rest, _ = strings.Cut(text, "\n")
			flags += "\n"
		}
		sent := flags + p.first + rest
		p.hashes[hash(text)] = hash(sent)
		return sent
	}
	return text
}

func hash(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}
