package lease

import (
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestLeasesThatEndBeforeTheirFirstRenewalSetTheAlarmOnlyOnce(t *testing.T) {
	t.Parallel()
	k := &Keeper{held: make(map[*Renewal]struct{})}
	var first time.Time
	for i := range 3 {
		r := &Renewal{TTL: time.Hour}
		k.Keep(r)
		k.Drop(r)
		if i == 0 {
			first = k.at
		}
		expect.Equal(t, "when it looks", k.at, first)
	}
	k.alarm.Stop()
}
