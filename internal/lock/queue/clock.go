package queue

import "time"

// clock is what is known of a server's clock from its answers. The zero value knows nothing.
type clock struct {
	began       time.Time
	least, most int64 // what it showed then, in µs
}

// learn takes in that the server's clock showed that many µs after sent and before got. It reports whether the clock
// was set, so that what was known before is not true any more.
func (c *clock) learn(sent, got time.Time, server int64) (set bool) {
	first := c.began.IsZero()
	if first {
		c.began = sent
	}
	least, most := server-c.local(got), server-c.local(sent)
	set = !first && (least > c.most || most < c.least)
	if first || set {
		c.least, c.most = least, most
	} else {
		c.least, c.most = max(c.least, least), min(c.most, most)
	}
	return set
}

// at is the latest that the server's clock may have shown at a local time, by a round trip at most; 0: nothing is
// known. An estimate might be too early, and a caller would overtake who was queued before it came.
func (c *clock) at(t time.Time) int64 {
	if c.began.IsZero() {
		return 0
	}
	return c.most + c.local(t)
}

func (c *clock) local(t time.Time) int64 { return t.Sub(c.began).Microseconds() }
