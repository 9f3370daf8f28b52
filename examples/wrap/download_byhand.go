package wrap

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Storage has the modules that were downloaded.
type Storage interface {
	Exists(ctx context.Context, module string) (bool, error)
	Download(ctx context.Context, module string) error
}

// MirrorByHand downloads each module once, if nothing goes wrong.
type MirrorByHand struct {
	storage Storage
	rdb     *redis.Client
}

// Stash has the module in the storage when it returns. It asks ten times a second whether the lock is free. A download
// that takes longer than a minute loses its lock without a word, and then deletes that of the next one.
func (m *MirrorByHand) Stash(ctx context.Context, module string) error {
	for {
		locked, err := m.rdb.SetNX(ctx, "lock:"+module, "me", time.Minute).Result()
		if err != nil {
			return err
		}
		if locked {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	defer m.rdb.Del(ctx, "lock:"+module) // with the context of the request: if its client has left, nobody unlocks
	there, err := m.storage.Exists(ctx, module)
	if err != nil || there {
		return err
	}
	return m.storage.Download(ctx, module)
}
