package selfcheck

import (
	"context"

	"github.com/cacheguard/go/internal/redis/serverinfo"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// server asks who answers. That the user may not know is no failure.
func (c *Checks) server(ctx context.Context) serverinfo.Name {
	name, err := lifecycle.Bounded(ctx, c.Life, c.Timeout, func(ctx context.Context) (serverinfo.Name, error) {
		return serverinfo.Ask(ctx, c.Redis), nil
	})
	if err != nil {
		return serverinfo.Name{Why: err.Error()}
	}
	return name
}
