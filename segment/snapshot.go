package segment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/run/errs"
)

// snapshot is what all segments had, each at a moment of its own.
type snapshot struct {
	found    bool     // there is such a counter
	until    string   // when it expires
	left     []int64  // by segment
	versions []string // by segment
	moves    []move   // on their way
}

// snapshot reads all segments, in one round trip.
func (c *Counter) snapshot(ctx context.Context, name string) (*snapshot, error) {
	reads := make([]script.Call, c.cfg.Segments)
	for i := range reads {
		reads[i] = script.Call{Script: hgetall, Keys: []string{c.key(name, i)}}
	}
	answers, err := c.askAll(ctx, reads)
	if err != nil {
		return nil, err
	}
	s := &snapshot{left: make([]int64, len(reads)), versions: make([]string, len(reads))}
	for i, answer := range answers {
		fields, err := fieldsOf(answer)
		if err == nil {
			err = s.add(i, fields)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// fieldsOf reads the reply to HGETALL: a map, or before RESP3 a list.
func fieldsOf(answer *redis.Cmd) (map[string]string, error) {
	fields := make(map[string]string)
	note := func(field, value any) {
		name, _ := field.(string)
		fields[name], _ = value.(string)
	}
	if all, is := answer.Val().(map[any]any); is {
		for field, value := range all {
			note(field, value)
		}
		return fields, nil
	}
	list, err := answer.Slice()
	for i := 0; i+1 < len(list); i += 2 {
		note(list[i], list[i+1])
	}
	return fields, err
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
			return fmt.Errorf("segment %d has %q in field %q: %w", segment, errs.Short(value), field, err)
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
