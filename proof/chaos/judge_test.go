package chaos

import (
	"path/filepath"
	"testing"
	"time"
)

func TestOnlyWhatIsReadBesideTwoPrimariesIsExcused(t *testing.T) {
	t.Parallel()
	const lag = time.Second
	for name, c := range map[string]struct {
		since, until time.Duration // before the Get; until 0: still
		isLocal      bool
		wrong        bool
	}{
		"there was one":              {wrong: true},
		"there are two":              {since: time.Minute},
		"there were two":             {since: time.Minute, until: time.Millisecond, wrong: true},
		"a tier was filled by one":   {since: time.Minute, until: lag / 2, isLocal: true},
		"a tier, and that is past":   {since: time.Minute, until: 2 * lag, isLocal: true, wrong: true},
		"there are two, since later": {since: -time.Second, wrong: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLedger(t, filepath.Join(t.TempDir(), "ledger"))
			l.returned[0][1].add(2)
			from := mono() + int64(time.Hour)
			if c.since != 0 {
				l.split.since.Store(from - int64(c.since))
				l.split.until.Store(from + int64(time.Hour))
			}
			if c.until != 0 {
				l.split.until.Store(from - int64(c.until))
			}
			found := l.judge(0, 1, c.isLocal, lag, from, 1)
			if (found != "") != c.wrong || l.wrong[0].Load() > 0 != c.wrong || l.excused[0].Load() > 0 == c.wrong {
				t.Errorf("found %q, %d wrong, %d excused", found, l.wrong[0].Load(), l.excused[0].Load())
			}
		})
	}
}
