package segment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// snapshot is what all segments had, each at a moment of its own.
type snapshot struct {
	found    bool     // there is such a counter
	until    string   // when it expires
	left     []int64  // by segment
	versions []string // by segment
	moves    []move   // on their way
}

// look reads all segments, in one round trip.
func (c *Counter) look(ctx context.Context, name string) (*snapshot, error) {
	return runPipeline(ctx, c, func(ctx context.Context) (*snapshot, error) {
		pipe := c.rdb.Pipeline()
		reads := make([]*redis.MapStringStringCmd, c.cfg.Segments)
		for i := range reads {
			reads[i] = pipe.HGetAll(ctx, c.key(name, i))
		}
		_, _ = pipe.Exec(ctx) // each command keeps its error
		s := &snapshot{left: make([]int64, len(reads)), versions: make([]string, len(reads))}
		for i, read := range reads {
			fields, err := read.Result()
			if err == nil {
				err = s.add(i, fields)
			}
			if err != nil {
				return nil, err
			}
		}
		return s, nil
	})
}

// add notes what a segment has.
func (s *snapshot) add(segment int, fields map[string]string) error {
	for field, value := range fields {
		var err error
		switch id, isMove := strings.CutPrefix(field, "to:"); {
		case isMove:
			m := move{id: id, from: segment}
			_, err = fmt.Sscanf(value, "%d %d", &m.to, &m.units)
			if err == nil && (m.to < 0 || m.to >= len(s.left)) {
				err = fmt.Errorf("there is no segment %d", m.to)
			}
			s.moves = append(s.moves, m)
		case field == "left":
			s.left[segment], err = strconv.ParseInt(value, 10, 64)
		case field == "version":
			s.versions[segment] = value
		case segment == 0 && field == "token":
			s.found = true
		case segment == 0 && field == "until":
			s.until = value
		}
		if err != nil {
			return fmt.Errorf("segment %d has %q in field %q: %w", segment, value, field, err)
		}
	}
	return nil
}

func (s *snapshot) total() (units int64) {
	for _, left := range s.left {
		units += left
	}
	return units
}

func (s *snapshot) richest() int {
	return slices.Index(s.left, slices.Max(s.left))
}

// still reports whether units were only taken between two snapshots, and none was on its way: then there were never
// more than the first one counted.
func (s *snapshot) still(next *snapshot) bool {
	return s != nil && len(s.moves) == 0 && slices.Equal(s.versions, next.versions)
}
