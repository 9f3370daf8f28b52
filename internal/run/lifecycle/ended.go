package lifecycle

import (
	"context"
	"errors"
	"fmt"
)

// Ended is why a context ended: its error, and its cause if that says more.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || errors.Is(cause, err) { // nil: it has ended only now
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
