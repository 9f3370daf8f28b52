package cacheguard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

// A database says how it spells what it was asked for.
func TestRowsUnderAnotherSpellingOfTheirKeyAreFound(t *testing.T) {
	t.Parallel()
	f := newFleet(t, standalone(t), 1, Config{RedisTimeout: bearing})
	names := newCaches(t, f, CacheConfig[string, string]{
		Name: "name", Key: strings.ToLower,
		Load: func(_ context.Context, name string) (string, error) { return name, nil },
		LoadMany: func(_ context.Context, asked []string) (map[string]string, error) {
			rows := map[string]string{"unasked": ""}
			for _, name := range asked {
				if name != "nobody" {
					rows[strings.ToUpper(name)] = name
				}
			}
			return rows, nil
		},
	})[0]
	days := newCaches(t, f, CacheConfig[time.Time, int]{
		Name: "day", Key: func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		Load: func(_ context.Context, day time.Time) (int, error) { return day.UTC().Day(), nil },
		LoadMany: func(_ context.Context, asked []time.Time) (map[time.Time]int, error) {
			rows := make(map[time.Time]int)
			for _, day := range asked {
				rows[day.In(time.FixedZone("elsewhere", 3600))] = day.Day()
			}
			return rows, nil
		},
	})[0]
	found, err := names.GetMany(t.Context(), []string{"Ann", "bob", "nobody"})
	expect.Equal(t, "of many", fmt.Sprint(found, err), "map[Ann:Ann bob:bob] <nil>")
	first := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	all, err := days.GetMany(t.Context(), []time.Time{first, first.AddDate(0, 0, 1)})
	expect.Equal(t, "of days", fmt.Sprint(all[first], all[first.AddDate(0, 0, 1)], err), "2 3 <nil>")
}
