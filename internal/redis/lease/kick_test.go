package lease

import (
	"testing"
	"time"
)

func TestLeasesThatEndBeforeTheirFirstRenewalWakeTheKeeperOnlyOnce(t *testing.T) {
	t.Parallel()
	k := newKeeper(nil, time.Second)
	k.start.Do(func() {}) // the test does what its goroutine would
	for i := range 3 {
		r := &Renewal{TTL: time.Hour}
		k.Keep(r)
		k.Drop(r)
		kicked := len(k.kick) == 1
		if kicked {
			<-k.kick
			k.collect(time.Now())
		}
		if kicked != (i == 0) {
			t.Errorf("lease %d: kicked %v", i, kicked)
		}
	}
}
