package cacheguard

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// scriptOf picks the runs of a script out of the traffic, by the name of its file, and those of the one that does the same in the step that
// takes or gives up a lock.
func scriptOf(name string) redistest.Match {
	source := protocol.Source(name)
	if source == "" {
		source = epoch.Source(name)
	}
	alone := redistest.Script(source)
	with, is := map[string]string{"begin_update": "lock_update", "end_update": "unlock_update", "put": "unlock_put"}[name]
	if !is {
		return alone
	}
	together := redistest.Script(protocol.Source(with))
	return func(args []string) bool { return alone(args) || together(args) }
}

// reading picks out reads of keys: with GET, or together with epochs.
func reading(args []string) bool {
	return strings.EqualFold(args[0], "get") || strings.EqualFold(args[0], "mget")
}

// storedEntry is the key's entry as the fill script would store it.
func storedEntry(key string, s protocol.Stamp, k protocol.Kind, fresh, took time.Duration, payload []byte) []byte {
	head, tail := protocol.EncodeEntry(key, protocol.Entry{Kind: k, Fresh: fresh, Took: took, Stamp: s, Payload: payload}, rand.Text())
	return append([]byte(head+writtenAt(time.UnixMilli(0x190a1b2c3d))), tail...)
}

// writtenAt is what the fill script puts between the two parts.
func writtenAt(at time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli()))[2:]
	check := byte(0)
	for _, part := range b {
		check += part
	}
	return string(append(b, check))
}

// stampOn is the stamp of an entry that is loaded now.
func stampOn(t *testing.T, g *Guard, key string, tags ...string) protocol.Stamp {
	t.Helper()
	ctx := context.Background()
	epochs := g.epochs.Begin(key, g.keys.ValueKey(key), "", nil)
	epochs.Ask(ctx)
	epochs.Prepare(ctx)
	epochs.Ready(ctx)
	s, err := epochs.Stamp(ctx, tags)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
