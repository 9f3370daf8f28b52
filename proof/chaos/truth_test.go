package chaos

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// truth is the database of all processes. It numbers all that is read and written.
type truth struct{ *redis.Client }

// Only the latest fence that was seen may write a row. A look shows a fence too. Otherwise a process that looks first and writes last would
// undo what somebody with a lower fence wrote in between.
var (
	lookScript = redis.NewScript(`
		local fence = tonumber(ARGV[1])
		if fence < tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) then return -1 end
		if fence > 0 then redis.call('HSET', KEYS[1], 'fence', fence) end
		return tonumber(redis.call('HGET', KEYS[1], 'value') or 0)`)
	writeScript = redis.NewScript(`
		local fence = tonumber(ARGV[1])
		if fence < tonumber(redis.call('HGET', KEYS[1], 'fence') or 0) then return -1 end
		if fence > 0 then redis.call('HSET', KEYS[1], 'fence', fence) end
		if ARGV[2] == '' then return redis.call('INCR', 'number') end
		redis.call('HSET', KEYS[1], 'value', ARGV[2])
		return tonumber(ARGV[2])`)
)

var errFenced = errors.New("a later fence was seen")

// read is a read of whatever there is.
func (d truth) read(ctx context.Context) (number int64, err error) {
	return d.Incr(ctx, "number").Result()
}

// write writes a row.
func (d truth) write(ctx context.Context, row string, fence int64) (number int64, err error) {
	return answer(writeScript.Run(ctx, d, []string{row}, max(fence, 0), "").Int64())
}

// bear makes another thing.
func (d truth) bear(ctx context.Context) (id int64, err error) {
	n, err := d.Incr(ctx, "births").Result()
	return n - 1, err
}

// born is how many things there are.
func (d truth) born(ctx context.Context) (int64, error) {
	n, err := d.Get(ctx, "births").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

// look returns what was counted; with a fence, if none later was seen.
func (d truth) look(ctx context.Context, row string, fence int64) (int64, error) {
	return answer(lookScript.Run(ctx, d, []string{row}, max(fence, 0)).Int64())
}

// set writes what the caller has made of what it looked at.
func (d truth) set(ctx context.Context, row string, fence, value int64) error {
	_, err := answer(writeScript.Run(ctx, d, []string{row}, fence, value).Int64())
	return err
}

func answer(value int64, err error) (int64, error) {
	if err == nil && value < 0 {
		err = errFenced
	}
	return value, err
}
