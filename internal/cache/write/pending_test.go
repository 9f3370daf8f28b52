package write

import (
	"fmt"
	"io"
	"testing"

	"github.com/cacheguard/go/internal/cache/tier"
	"github.com/cacheguard/go/internal/testing/expect"
)

// unaware is a Guard that is not told what is pending.
type unaware struct{ Owner }

func (unaware) ArePending(bool) {}

func newWrites() *Writes {
	w := new(Writes)
	w.Open(Config{Owner: unaware{}, Notices: tier.NewNotices("c", 4)})
	return w
}

// failedKey is a request that has failed.
func (w *Writes) failedKey(part int, key string) request {
	return request{target: target{keys{w}, part, key}, err: io.EOF}
}

func TestPendingKeysAreBounded(t *testing.T) {
	t.Parallel()
	w := newWrites()
	for i := range 3 {
		failed := make([]request, mostPending/2)
		for j := range failed {
			failed[j] = w.failedKey(0, fmt.Sprint(i, ":", j))
		}
		expect.Equal(t, "parts that start", len(w.addPending(failed, nil)), map[int]int{0: 1}[i])
	}
	expect.Equal(t, "pending", w.Pending(), mostPending)
	batch, upTo := w.pendingOf(0)
	expect.Equal(t, "in the order of the calls", batch[0].since < batch[mostPending-1].since, true)
	batch = batch[:most]
	again := w.failedKey(0, batch[0].name)
	w.addPending([]request{again}, nil) // pending again while it is being sent
	w.resolve(batch, upTo)
	expect.Equal(t, "pending", w.Pending(), mostPending-most+1)
	_, still := w.pending.parts[0][again.target]
	expect.Equal(t, "still pending", still, true)
}

func TestAReplayBeginsAgainForWhatFailsAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := newWrites()
	failed := []request{w.failedKey(3, "k")}
	for range 2 {
		expect.Equal(t, "starts", fmt.Sprint(w.addPending(failed, nil)), "[3]")
		for range 2 {
			expect.Equal(t, "begins while it runs", len(w.addPending(failed, nil)), 0)
			w.resolve(w.pendingOf(3))
		}
		batch, _ := w.pendingOf(3)
		expect.Equal(t, "left", len(batch), 0)
	}
}
