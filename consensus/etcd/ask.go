package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/cacheguard/go/consensus/internal/store"
)

// attempts is how often a request is sent that is not answered: the client sends each to the next member, so one that is
// frozen, of three, does not fail a request.
const attempts = 3

// ask sends a request that may be sent again, and gives up after the time-out.
func ask[T any](ctx context.Context, timeout time.Duration, request func(context.Context) (T, error)) (answer T, err error) {
	err = store.Bounded(ctx, timeout, func(ctx context.Context) (err error) {
		for range attempts {
			once, end := context.WithTimeout(ctx, timeout/attempts)
			answer, err = request(once)
			end()
			if err == nil || ctx.Err() != nil || errors.Is(err, rpctypes.ErrLeaseNotFound) {
				break
			}
		}
		return err
	})
	return answer, err
}
