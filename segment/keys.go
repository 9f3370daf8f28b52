package segment

import (
	"strconv"

	"github.com/cacheguard/go/internal/redis/keys"
)

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
