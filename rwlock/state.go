package rwlock

import "time"

// State is how things stand with a lock.
type State struct {
	Writer         string        // the token of the writer that holds it; empty: none
	Fence          int64         // the last one that was given; 0: none is remembered
	Left           time.Duration // until the leases of its holders end, unless they are renewed
	Readers        int           // that hold it
	WritersWaiting int
	ReadersWaiting int
}
