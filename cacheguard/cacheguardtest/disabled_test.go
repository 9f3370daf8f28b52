package cacheguardtest_test

import (
	"testing"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cacheguard/cacheguardtest"
	"github.com/cacheguard/go/internal/testing/expect"
)

func TestLoadsOfADisabledGuardCountAsWell(t *testing.T) {
	t.Parallel()
	env := cacheguardtest.New(t, cacheguard.Config{Disabled: true})
	want(t, env, "k", "a", "a")
	want(t, env, "k", "b", "b")
	env.Settle()
	expect.Equal(t, "loads", env.Loads("k"), 2)
}
