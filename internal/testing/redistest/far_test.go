package redistest

import (
	"testing"
	"time"
)

func TestManyCommandsOnAFarWayTakeOneRoundTripTogether(t *testing.T) {
	t.Parallel()
	const roundTrip = 200 * time.Millisecond
	rdb := StartFar(t, Start(t).Addr(), roundTrip).Client(t)
	if err := rdb.Ping(t.Context()).Err(); err != nil { // connects
		t.Fatal(err)
	}
	pipe := rdb.Pipeline()
	for range 100 {
		pipe.Ping(t.Context())
	}
	began := time.Now()
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < roundTrip || took > 10*roundTrip {
		t.Errorf("100 commands took %v", took)
	}
}
