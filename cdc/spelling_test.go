package cdc

import (
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestExactlyFindsTheKeyThatWasAskedForAndNoOther(t *testing.T) {
	t.Parallel()
	expect.ErrorIs(t, Exactly("abc", "abc"))
	expect.ErrorIs(t, Exactly("abc", "Abc"), cacheguard.ErrNotFound)
	expect.ErrorIs(t, Exactly("abc", "abc "), cacheguard.ErrNotFound)
	expect.ErrorIs(t, Exactly(42, 42))
}
