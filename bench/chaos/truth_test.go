package chaos

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// truth is the database of all processes.
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
		if ARGV[2] == '' then return redis.call('HINCRBY', KEYS[1], 'value', 1) end
		redis.call('HSET', KEYS[1], 'value', ARGV[2])
		return tonumber(ARGV[2])`)
)

var errFenced = errors.New("a later fence was seen")

// look returns the value; with a fence, if none later was seen.
func (d truth) look(ctx context.Context, row string, fence int64) (int64, error) {
	return answer(lookScript.Run(ctx, d, []string{row}, max(fence, 0)).Int64())
}

// increase makes the next version.
func (d truth) increase(ctx context.Context, row string, fence int64) (int64, error) {
	return answer(writeScript.Run(ctx, d, []string{row}, fence, "").Int64())
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
