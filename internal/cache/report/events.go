package report

import (
	"context"
	"log/slog"
	"time"
)

// Takeover notes that a lease was taken over.
func (j *Journal) Takeover(key string) {
	j.warn(context.Background(), &j.taken, "lease taken over from an instance that did not renew it", key)
}

// LeaseLost notes that a load lost its lease.
func (j *Journal) LeaseLost(key string) {
	j.warn(context.Background(), &j.lost, "lease lost by a load that still runs", key)
}

// Damaged notes that Redis has something that is no entry.
func (j *Journal) Damaged(key string, err error) {
	j.warn(context.Background(), &j.damaged, "entry cannot be decoded, it is loaded anew", key, "error", err)
}

// Unstorable notes that a value cannot be stored. The attributes say why.
func (j *Journal) Unstorable(ctx context.Context, key string, attrs ...any) {
	j.warn(ctx, &j.unstored, "value cannot be stored", key, attrs...)
}

// Altered notes that a value comes back from its Codec otherwise than it was, and says so if that is news.
func (j *Journal) Altered(ctx context.Context, isNews bool, key string, attrs ...any) {
	j.AlteredValues.Add(1)
	if isNews {
		j.warn(ctx, &j.altered, "value does not come back from its Codec as it was: callers get different values", key, attrs...)
	}
}

// Uncompressed notes that a value is stored as it is.
func (j *Journal) Uncompressed(ctx context.Context, key string, err error) {
	j.unstored.Log(ctx, j.cfg.Logger, slog.LevelError, "value is stored without compression", key, "error", err)
}

// Unrefreshed notes that a background load failed, whose error no caller sees. The attributes say why.
func (j *Journal) Unrefreshed(ctx context.Context, key string, attrs ...any) {
	j.FailedRefreshes.Add(1)
	j.warn(ctx, &j.unrefreshed, "background load failed", key, attrs...)
}

// Outdated notes that the cache has another value than the source, and keeps it.
func (j *Journal) Outdated(key string) {
	j.warn(context.Background(), &j.outdated, "cached value is not that of the source, a write did not invalidate it", key)
}

// Panicked notes that a loader panicked.
func (j *Journal) Panicked(ctx context.Context, key string, stack []byte) {
	j.panicked.Log(ctx, j.cfg.Logger, slog.LevelError, "loader panicked", key, "stack", string(stack))
}

// Loaded notes how long a load took, if that was long.
func (j *Journal) Loaded(key string, took time.Duration, err error) {
	if limit := j.cfg.SlowLoad; limit > 0 && took >= limit {
		j.warn(context.Background(), &j.slow, "slow load", key, "took", took.Round(time.Millisecond).String(), "error", err)
	}
}

// StillRuns notes that a load has taken SlowLoad and goes on.
func (j *Journal) StillRuns(key string) {
	j.warn(context.Background(), &j.still, "slow load, it still runs", key, "after", j.cfg.SlowLoad.String())
}

// Stepped notes that a server's clock has stepped by that much.
func (j *Journal) Stepped(key string, by time.Duration) {
	j.warn(context.Background(), &j.step, "clock of redis stepped, or another server answers", key, "by", by.Round(time.Millisecond).String())
}

// Dropped notes that the local tier was emptied of that many entries. It does not hold up the subscription.
func (j *Journal) Dropped(entries int) {
	if entries > 0 {
		j.cfg.Background(func() { // stop: the Logger's
			j.voided.Log(context.Background(), j.cfg.Logger, slog.LevelInfo,
				"local tier dropped, messages may have been missed", "", "entries", entries)
		})
	}
}

// Forgotten notes that the epoch of all entries was removed, and not by this Guard. It does not hold up a Get.
func (j *Journal) Forgotten() {
	j.cfg.Background(func() { // stop: the Logger's
		j.warn(context.Background(), &j.gone,
			"all entries are invalid or gone: redis lost its data, or evicted their epoch, or another instance called InvalidateAll", "")
	})
}
