package outbox

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/memory"
)

// TestAFeedInvalidatesWhatIsCachedInTheProcess has a feed whose notes, and whose cache, are in the engine of package memory.
func TestAFeedInvalidatesWhatIsCachedInTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, SQLite, shared.Client(t))
	rdb, err := memory.New(memory.Config{MaxBytes: 1 << 20})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { expect.ErrorIs(t, rdb.Close()) })
	w.Use(rdb)
	f, stop := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("UPDATE products SET name = 'uno' WHERE id = 1")
	w.CatchUp(f)
	w.Reads(1, "uno")
	stop()
	w.exec("UPDATE products SET name = 'eins' WHERE id = 1")
	f, _ = w.run(w.config())
	w.CatchUp(f)
	w.Reads(1, "eins")
	expect.ErrorIs(t, f.SelfCheck(t.Context()))
}
