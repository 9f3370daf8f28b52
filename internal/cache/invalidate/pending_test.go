package invalidate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestOwedKeysAreBounded(t *testing.T) {
	t.Parallel()
	var p Pending
	for i := range 3 {
		keys := make([]string, mostPending/2)
		for j := range keys {
			keys[j] = fmt.Sprint(i, ":", j)
		}
		expect.Equal(t, "start", p.enqueue(keys, strings.Clone), i == 0)
	}
	expect.Equal(t, "pending", p.Len(), mostPending)
	keys, upTo := p.batch()
	expect.Equal(t, "a batch", len(keys), most)
	p.enqueue(keys[:1], strings.Clone) // pending again while it is being sent
	for _, key := range keys {
		p.resolve(key, upTo)
	}
	expect.Equal(t, "pending", p.Len(), mostPending-most+1)
	expect.Equal(t, "still pending", p.Has(keys[0]), true)
}
