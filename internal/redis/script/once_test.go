package script_test

import (
	"crypto/rand"
	"testing"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/redistest"
)

func TestOnceSendsNothingAgainThatWasNotAnswered(t *testing.T) {
	t.Parallel()
	p := redistest.StartProxy(t, shared.Addr())
	rdb := p.Client(t)
	counts := script.New("return redis.call('INCR', KEYS[1])")
	key := rand.Text()
	if err := call(counts, key).Run(t.Context(), script.Once(rdb)).Err(); err != nil {
		t.Fatal(err)
	}
	p.On(redistest.Command("evalsha"), redistest.DropReply).Times(1)
	if err := call(counts, key).Run(t.Context(), script.Once(rdb)).Err(); err == nil {
		t.Error("a lost reply was not told")
	}
	if n, err := call(counts, key).Run(t.Context(), rdb).Int(); n != 3 || err != nil {
		t.Errorf("it ran %d times, %v; want 3", n, err)
	}
}
