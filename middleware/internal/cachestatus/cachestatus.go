// Package cachestatus formats the parameters of Cache-Status (RFC 9211).
package cachestatus

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Forward has the parameters of a response that the handler was asked for.
type Forward struct {
	Why       string        // why it was asked
	Status    int           // of the handler's response; 0: not said
	TTL       time.Duration // how long the response is still fresh, if HasTTL
	HasTTL    bool
	Stored    bool
	Collapsed bool // the response was made for another request
	Detail    string
}

// String returns the parameters as they follow the name of the cache.
func (f Forward) String() string {
	s := "; fwd=" + f.Why
	if f.Status != 0 {
		s += "; fwd-status=" + strconv.Itoa(f.Status)
	}
	if f.HasTTL {
		s += "; ttl=" + strconv.FormatInt(seconds(f.TTL), 10)
	}
	if f.Stored {
		s += "; stored"
	}
	if f.Collapsed {
		s += "; collapsed"
	}
	if f.Detail != "" {
		s += Detail(f.Detail)
	}
	return s
}

// Hits makes the members of a cache that had the response, and remembers them: hits of one second mostly say the same.
type Hits struct {
	begin string
	last  [256]atomic.Pointer[hit] // by seconds
}

// hit is the text for a response with so many seconds left.
type hit struct {
	left int64
	text string
}

// NewHits is for the cache of that name.
func NewHits(cache string) *Hits { return &Hits{begin: cache + "; hit"} }

// Of is the member for a response that is fresh for that long.
func (h *Hits) Of(ttl time.Duration) string {
	left := seconds(ttl)
	slot := &h.last[uint64(left)%uint64(len(h.last))]
	last := slot.Load()
	if last == nil || last.left != left {
		last = &hit{left, h.begin + "; ttl=" + strconv.FormatInt(left, 10)}
		slot.Store(last)
	}
	return last.text
}

// Detail is the parameter that tells more.
func Detail(detail string) string { return "; detail=" + detail }

// seconds of a response that has just become stale are fewer than none: it is not fresh.
func seconds(d time.Duration) int64 {
	left := int64(d / time.Second)
	if d < 0 && d%time.Second != 0 {
		left--
	}
	return left
}

// Key is the parameter that names the page: a String of Structured Fields, without the characters that no String may have.
func Key(key string) string {
	key = strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return -1
		}
		return c
	}, key)
	return `; key="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
