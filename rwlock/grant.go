package rwlock

import (
	"strconv"
	"strings"
)

// parseGrant reads what promote publishes: the ticket up to which waiters are granted, and the fence. Not granted: the
// message is not for the waiter with this ticket, which queued later.
func parseGrant(body string, ticket int64) (fence int64, granted bool) {
	upTo, rest, _ := strings.Cut(body, ":")
	last, err := strconv.ParseInt(upTo, 10, 64)
	if err != nil || last < ticket {
		return 0, false
	}
	fence, err = strconv.ParseInt(rest, 10, 64)
	return fence, err == nil
}
