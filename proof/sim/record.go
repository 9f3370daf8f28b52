package sim

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"sync"
	"time"
)

// record hashes all messages of a run: in which order they were sent, when each arrives, and what it says, keys and tokens included. Runs of one
// record went the same way.
type record struct {
	began time.Time

	mu       sync.Mutex
	messages int
	hash     hash.Hash
}

func newRecord() record { return record{began: time.Now(), hash: sha256.New()} }

func (r *record) add(m message, isReply bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages++
	_, _ = fmt.Fprintln(r.hash, time.Since(r.began), m.at.Sub(r.began), m.lost, isReply, len(m.bytes)) // a Hash returns no error
	_, _ = r.hash.Write(m.bytes)                                                                       // the same
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%d messages, hash %x\n", r.messages, r.hash.Sum(nil)[:8])
}
