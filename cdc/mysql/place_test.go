package mysql

import (
	"errors"
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// A reader that was frozen while it had the lock goes on when another one has begun.
func TestAReaderThatBeginsKeepsEarlierOnesFromMovingThePosition(t *testing.T) {
	t.Parallel()
	f := &Feed{cfg: Config{Redis: redistest.DeclaredKeys(t, redistest.Start(t).Client(t))}, key: "place"}
	_, there, err := f.claim(t.Context(), 5)
	expect.Equal(t, "a place at first", there || err != nil, false)
	at := place{"1-7", "log.000003", 4, 0}
	expect.Equal(t, "the first stores", f.store(t.Context(), 5, at), nil)
	from, _, err := f.claim(t.Context(), 6)
	expect.Equal(t, "error", err, nil)
	expect.Equal(t, "where the second begins", from, at)
	at.pos = 100
	if err := f.store(t.Context(), 5, at); !errors.Is(err, errOvertaken) {
		t.Errorf("the first stores: %v", err)
	}
	if _, _, err := f.claim(t.Context(), 5); !errors.Is(err, errOvertaken) {
		t.Errorf("the first begins again: %v", err)
	}
	expect.Equal(t, "the second stores", f.store(t.Context(), 6, at), nil)
}
