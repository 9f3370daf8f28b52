package bench

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkLockUncontended locks and unlocks what nobody else wants. The libraries take turns, a hundred each, so that a
// slow moment of the machine is one for all.
func BenchmarkLockUncontended(b *testing.B) {
	const batch = 100
	lockers := make([]locker, len(lockLibraries))
	times := make([][]time.Duration, len(lockLibraries))
	served := make([]float64, len(lockLibraries)) // time that the server spent in commands, in µs
	for i, lib := range lockLibraries {
		lockers[i] = lib.open(b)
		lockUnlock(b, lockers[i])
	}
	n := 0
	for b.Loop() {
		for i, k := range lockers {
			before := serverMicros(b)
			for range batch {
				start := time.Now()
				lockUnlock(b, k)
				times[i] = append(times[i], time.Since(start))
			}
			served[i] += serverMicros(b) - before
		}
		n += batch
	}
	b.ReportMetric(0, "ns/op")
	for i, lib := range lockLibraries {
		slices.Sort(times[i])
		unit := strings.NewReplacer(" ", "-", ",", "").Replace(lib.name)
		b.ReportMetric(float64(percentile(times[i], 50))/1e3, unit+"-p50-µs")
		b.ReportMetric(float64(percentile(times[i], 99))/1e3, unit+"-p99-µs")
		b.ReportMetric(served[i]/float64(n), unit+"-server-µs")
	}
}

func lockUnlock(b *testing.B, k locker) {
	b.Helper()
	unlock, err := k.lock(context.Background(), "lone")
	if err == nil {
		err = unlock()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLockAllocs is for what a lock costs the client.
func BenchmarkLockAllocs(b *testing.B) {
	for _, lib := range lockLibraries {
		b.Run(lib.name, func(b *testing.B) {
			k := lib.open(b)
			lockUnlock(b, k)
			b.ReportAllocs()
			for b.Loop() {
				lockUnlock(b, k)
			}
		})
	}
}

// serverMicros is how long the server has run commands, by commandstats. Scripts count with what they call.
func serverMicros(b *testing.B) (sum float64) {
	b.Helper()
	for name, stat := range shared.Info("commandstats") {
		switch name {
		case "cmdstat_evalsha", "cmdstat_set", "cmdstat_setnx":
		default:
			continue
		}
		for field := range strings.SplitSeq(stat, ",") {
			if usec, ok := strings.CutPrefix(field, "usec="); ok {
				n, err := strconv.ParseFloat(usec, 64)
				if err != nil {
					b.Fatal(err)
				}
				sum += n
			}
		}
	}
	return sum
}
