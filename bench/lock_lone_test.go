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
	served := make([]float64, len(lockLibraries)) // what the server computed, in µs
	for i, lib := range lockLibraries {
		lockers[i] = lib.open(b)
		lockUnlock(b, lockers[i])
	}
	n := 0
	for b.Loop() {
		for i, k := range lockers {
			before := serverCPU(b)
			for range batch {
				start := time.Now()
				lockUnlock(b, k)
				times[i] = append(times[i], time.Since(start))
			}
			served[i] += serverCPU(b) - before
		}
		n += batch
	}
	b.ReportMetric(0, "ns/op")
	for i, lib := range lockLibraries {
		slices.Sort(times[i])
		unit := strings.NewReplacer(" ", "-", ",", "").Replace(lib.name)
		b.ReportMetric(float64(percentile(times[i], 50))/1e3, unit+"-p50-µs")
		b.ReportMetric(float64(percentile(times[i], 99))/1e3, unit+"-p99-µs")
		b.ReportMetric(served[i]/float64(n), unit+"-server-cpu-µs")
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

// serverCPU is how much the server has computed, in µs: all that a request costs it, with reading and writing.
func serverCPU(b *testing.B) (sum float64) {
	b.Helper()
	info := shared.Info("cpu")
	for _, name := range []string{"used_cpu_sys_main_thread", "used_cpu_user_main_thread"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += seconds * 1e6
	}
	return sum
}
