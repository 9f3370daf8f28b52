package wrap

import (
	"context"

	"github.com/cacheguard/go/mutex"
)

// Mirror downloads each module once.
type Mirror struct {
	storage Storage
	locks   *mutex.Locker
}

// Stash has the module in the storage when it returns. Whoever waits is woken. A download that loses its lock has a
// context that ends, and one whose process dies keeps the others waiting for the Locker's TTL.
func (m *Mirror) Stash(ctx context.Context, module string) error {
	return m.locks.Do(ctx, module, func(ctx context.Context, _ *mutex.Lease) error {
		there, err := m.storage.Exists(ctx, module)
		if err != nil || there {
			return err
		}
		return m.storage.Download(ctx, module)
	})
}
