package wrap

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Loader loads many users in one query.
type Loader func(ctx context.Context, ids []string) (map[string]string, error)

// UsersByHand are names of users, cached in Redis and, against its load, in this process.
type UsersByHand struct {
	rdb   *redis.Client
	load  Loader
	slot  func(key string) int // of a cluster: MGET needs one
	local sync.Map
}

// Listen removes what other processes say. What they say while this one is not connected, it never hears.
func (u *UsersByHand) Listen(ctx context.Context) {
	messages := u.rdb.Subscribe(ctx, "users:deleted")
	defer messages.Close()
	for m := range messages.Channel() {
		for id := range strings.SplitSeq(m.Payload, ",") {
			u.local.Delete(id)
		}
	}
}

// GetMany returns the names of the users that there are.
func (u *UsersByHand) GetMany(ctx context.Context, ids []string) (map[string]string, error) {
	names, bySlot := make(map[string]string), make(map[int][]string)
	for _, id := range ids {
		if name, ok := u.local.Load(id); ok {
			names[id] = name.(string)
		} else {
			slot := u.slot("user:" + id)
			bySlot[slot] = append(bySlot[slot], id)
		}
	}
	for _, ids := range bySlot {
		if err := u.getSlot(ctx, ids, names); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// getSlot gets those of one slot.
func (u *UsersByHand) getSlot(ctx context.Context, ids []string, names map[string]string) error {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = "user:" + id
	}
	found, err := u.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return err
	}
	var missing []string
	for i, id := range ids {
		if name, ok := found[i].(string); ok {
			names[id] = name
			u.local.Store(id, name) // which may have been deleted since it was read
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	loaded, err := u.load(ctx, missing)
	if err != nil {
		return err
	}
	_, err = u.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for id, name := range loaded {
			names[id] = name
			u.local.Store(id, name)
			p.Set(ctx, "user:"+id, name, time.Hour)
		}
		return nil
	})
	return err
}

// Delete is called after the users were changed.
func (u *UsersByHand) Delete(ctx context.Context, ids ...string) error {
	_, err := u.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			p.Del(ctx, "user:"+id)
			u.local.Delete(id)
		}
		p.Publish(ctx, "users:deleted", strings.Join(ids, ","))
		return nil
	})
	return err
}
