package redistest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Checked is what has a SelfCheck.
type Checked interface {
	SelfCheck(ctx context.Context) error
	Close() error
}

// SelfCheck tests the SelfCheck of what open makes on a client. It names what the ACL's rules allow and the user may not, EVALSHA
// and another command, warns of a Redis that evicts, and returns closed when it was closed.
func SelfCheck[C Checked](t *testing.T, acl []string, another string, closed error, open func(*testing.T, *redis.Client) C) {
	t.Helper()
	t.Run("names what is refused", func(t *testing.T) {
		t.Parallel()
		server := Start(t)
		c := open(t, server.Client(t, server.As(t, append(slices.Clip(acl), "-evalsha", "-"+another)...)))
		if err := c.SelfCheck(Patiently(t)); err == nil || !strings.Contains(err.Error(), "EVALSHA") {
			t.Error(err)
		}
	})
	t.Run("warns of a Redis that evicts", func(t *testing.T) {
		t.Parallel()
		server := Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru")
		if err := open(t, server.Client(t)).SelfCheck(Patiently(t)); err == nil || !strings.Contains(err.Error(), "volatile-lru") {
			t.Error(err)
		}
	})
	t.Run("says that it was closed", func(t *testing.T) {
		t.Parallel()
		c := open(t, Start(t).Client(t))
		_ = c.Close()                                        // always nil
		if err := c.SelfCheck(Patiently(t)); err != closed { //nolint:errorlint // this very error
			t.Error(err)
		}
	})
}
