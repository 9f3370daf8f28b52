package cacheguard

import (
	"crypto/rand"
	"time"

	"github.com/cacheguard/go/internal/protocol"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// scriptOf picks the runs of a script out of the traffic, by the name of its file.
func scriptOf(name string) redistest.Match { return redistest.Script(protocol.Source(name)) }

// storedEntry is the entry as the fill script would store it.
func storedEntry(k protocol.Kind, fresh, took time.Duration, payload []byte) []byte {
	head, tail := protocol.EncodeEntry(protocol.Entry{Kind: k, Fresh: fresh, Took: took, Payload: payload}, rand.Text())
	return append([]byte(head+"0190a1b2c3d"), tail...)
}
