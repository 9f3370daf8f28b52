package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Bounded makes a request that may take so long. If it is given up for that, its error says so.
func Bounded(ctx context.Context, timeout time.Duration, request func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := request(limited)
	if err == nil || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w (%w)", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("no answer within %v: %w", timeout, err)
}
