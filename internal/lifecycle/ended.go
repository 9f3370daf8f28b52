package lifecycle

import (
	"context"
	"errors"
	"fmt"
)

// Ended is why a context ended: its error, and its cause if that says more.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
