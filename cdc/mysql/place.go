package mysql

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// place is a position in the log of a server.
type place struct {
	server, file string
	pos          uint32
	born         uint32 // when the server began the file, in seconds since 1970; 0: it is not known
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.pos) }

// number orders the places of a server: files are numbered.
func (p place) number() uint64 {
	_, digits, _ := cutLast(p.file, ".")
	n, _ := strconv.ParseUint(digits, 10, 32) // the server makes the names
	return n<<32 | uint64(p.pos)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

//go:embed place.lua
var placeSource string

//go:embed claim.lua
var claimSource string

var placeScript, claimScript = redis.NewScript(placeSource), redis.NewScript(claimSource)

// errOvertaken ends a reader that has lost its lock.
var errOvertaken = errors.New("cdc/mysql: another instance reads")

// store notes that everything before a place is invalidated.
func (f *Feed) store(ctx context.Context, fence int64, p place) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stored, err := placeScript.Run(ctx, f.cfg.Redis, []string{f.key}, fence, p.server, p.file, p.pos, p.born).Int()
	if err != nil {
		return fmt.Errorf("cdc/mysql: store the position: %w", err)
	}
	if stored == 0 {
		return errOvertaken
	}
	return nil
}

// nowhere takes the place of one that says nothing any more.
var nowhere = place{file: "none"}

// forget has whoever reads next begin anew.
func (f *Feed) forget(ctx context.Context, fence int64) error {
	if at, there, err := f.claim(ctx, fence); err != nil || !there || at == nowhere {
		return err
	}
	return f.store(ctx, fence, nowhere)
}

// claim is stored for a reader that begins. An earlier one, which may not know yet that it has lost its lock, stores nothing after it.
func (f *Feed) claim(ctx context.Context, fence int64) (p place, there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fields, err := claimScript.Run(ctx, f.cfg.Redis, []string{f.key}, fence).Slice()
	switch {
	case errors.Is(err, redis.Nil):
		return p, false, errOvertaken
	case err != nil:
		return p, false, fmt.Errorf("cdc/mysql: read the position: %w", err)
	}
	p, there = placeOf(fields)
	return p, there, nil
}

// stored is what store has stored; false: nothing.
func (f *Feed) stored(ctx context.Context) (p place, there bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	fields, err := f.cfg.Redis.HMGet(ctx, f.key, "server", "file", "pos", "born").Result()
	if err != nil {
		return p, false, fmt.Errorf("cdc/mysql: read the position: %w", err)
	}
	p, there = placeOf(fields)
	return p, there, nil
}

func placeOf(fields []any) (p place, there bool) {
	server, _ := fields[0].(string)
	file, _ := fields[1].(string)
	text, _ := fields[2].(string)
	second, _ := fields[3].(string)
	born, _ := strconv.ParseUint(second, 10, 32) // else it is not known
	pos, err := strconv.ParseUint(text, 10, 32)
	return place{server, file, uint32(pos), uint32(born)}, err == nil // an error: there is none
}
