package selfcheck

import (
	"context"

	"github.com/cacheguard/go/internal/redis/servername"
	"github.com/cacheguard/go/internal/run/lifecycle"
)

// server asks who answers. That the user may not know is no failure.
func (c *Checks) server(ctx context.Context) servername.Name {
	name, err := lifecycle.Bounded(ctx, c.Life, c.Timeout, func(ctx context.Context) (servername.Name, error) {
		return servername.Ask(ctx, c.Redis), nil
	}, nil)
	if err != nil {
		return servername.Name{Why: err.Error()}
	}
	return name
}
