package segment

import (
	"embed"
	"strconv"
	"time"

	"github.com/cacheguard/go/internal/redis/keys"
	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

var (
	createScript = script.Compile(files, "create")
	takeScript   = script.Compile(files, "take")
	undoScript   = script.Compile(files, "prelude", "undo")
	putScript    = script.Compile(files, "prelude", "put")
	sendScript   = script.Compile(files, "prelude", "send")
	hgetall      = script.Command("hgetall")
	hdel         = script.Command("hdel")
)

// How long receipts are kept: much longer than a request may be under way, or a process stop in the middle of a move.
const (
	keepReceipt     = 10 * time.Minute
	keepMoveReceipt = 24 * time.Hour
)

// What scripts say.
const (
	replyDone    = 1
	replyAbsent  = 0 // of put
	replyTooMany = -1

	replyNoSegment = -1 // of take
	replyStale     = -2
)

// creating is the call that creates a counter. It returns 1, or 0 if there is one.
func creating(key, token string, units int64, ttl time.Duration) script.Call {
	return script.Call{Script: createScript, Keys: []string{key}, Args: []any{token, units, script.Millis(ttl)}}
}

// taking is one request of a lane to a segment.
type taking struct {
	key    string // of the segment
	lane   string
	number int64
}

func (t taking) keys() []string { return []string{t.key, receiptKey(t.key, t.lane)} }

// take is the call that takes units, or fewer if that is enough, and returns how many.
func (t taking) take(units, enough int64) script.Call {
	return script.Call{
		Script: takeScript, Keys: t.keys(),
		Args: []any{t.number, units, enough, script.Millis(keepReceipt)},
	}
}

// undo is the call that gives back what was taken, and keeps copies of the request from taking.
func (t taking) undo() script.Call {
	return script.Call{Script: undoScript, Keys: t.keys(), Args: []any{t.number, script.Millis(keepReceipt)}}
}

// adding is the call that puts units into a segment, if that is there.
func adding(key, id string, units int64) script.Call {
	return script.Call{
		Script: putScript, Keys: []string{key, receiptKey(key, id)},
		Args: []any{units, script.Millis(keepReceipt), "", most},
	}
}

// sending is the call that sends units of a move on their way.
func (m *move) sending(key string) script.Call {
	return script.Call{
		Script: sendScript, Keys: []string{key, receiptKey(key, m.id)},
		Args: []any{m.id, m.to, m.units, script.Millis(keepMoveReceipt)},
	}
}

// arriving is the call that lets them arrive.
func (m *move) arriving(key, until string) script.Call {
	return script.Call{
		Script: putScript, Keys: []string{key, receiptKey(key, m.id)},
		Args: []any{m.units, script.Millis(keepMoveReceipt), until, 0},
	}
}

// key returns the key of a segment. The text between its number and the name brings it into its part of the slots: the
// nodes of a cluster mostly have ranges of slots, so the segments are spread evenly over them. It stands before the name
// because a brace in that ends the hash tag. The key has an ending of its own, so that no key of a Guard is the same.
func (c *Counter) key(name string, segment int) string {
	low := segment * keys.Slots / c.cfg.Segments
	high := (segment + 1) * keys.Slots / c.cfg.Segments
	for x := 0; ; x++ {
		key := keys.Tagged(c.cfg.Prefix, strconv.Itoa(segment)+"."+strconv.Itoa(x)+"/"+name) + ":segment"
		if slot := keys.Slot(key); low <= slot && slot < high {
			return key
		}
	}
}

// receiptKey is the key of a receipt beside a segment.
func receiptKey(segmentKey, id string) string { return segmentKey + ":" + id }
