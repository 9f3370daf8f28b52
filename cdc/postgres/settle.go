package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// settled returns when every new snapshot sees what the transactions with these numbers did. PostgreSQL logs and sends a commit before other
// transactions see it, and with synchronous replication long before. If the feed invalidated in between, a load could read the old row and store it
// for good. Without numbers, settled waits for all transactions that run now.
func settled(ctx context.Context, xids []uint64, take func() (snapshot, error)) error {
	var waiting []uint64
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		seen, err := take()
		if err != nil {
			return err
		}
		switch {
		case waiting != nil:
			waiting = slices.DeleteFunc(waiting, func(xid uint64) bool { return !seen.runs(xid) })
		case xids == nil:
			waiting = slices.Clone(seen.running)
		default:
			waiting = []uint64{}
			for _, xid := range xids {
				if full := seen.full(xid); seen.runs(full) {
					waiting = append(waiting, full)
				}
			}
		}
		if len(waiting) == 0 {
			return nil
		}
		if err := engine.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// snapshot says which transactions have ended: those before next that do not run.
type snapshot struct {
	next    uint64
	running []uint64
}

func takeSnapshot(ctx context.Context, side *pgx.Conn) (s snapshot, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var text string
	if err := side.QueryRow(ctx, "SELECT txid_current_snapshot()::text").Scan(&text); err != nil {
		return s, fmt.Errorf("cdc/postgres: ask which transactions run: %w", err)
	}
	return parseSnapshot(text)
}

// parseSnapshot reads xmin:xmax:xip,xip.
func parseSnapshot(text string) (s snapshot, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, fmt.Errorf("cdc/postgres: snapshot %q", text)
	}
	if s.next, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return s, fmt.Errorf("cdc/postgres: snapshot %q: %w", text, err)
	}
	for xid := range strings.SplitSeq(parts[2], ",") {
		if xid == "" {
			continue
		}
		n, err := strconv.ParseUint(xid, 10, 64)
		if err != nil {
			return s, fmt.Errorf("cdc/postgres: snapshot %q: %w", text, err)
		}
		s.running = append(s.running, n)
	}
	return s, nil
}

// runs reports whether a transaction still runs: the snapshot does not see what it did.
func (s snapshot) runs(xid uint64) bool { return xid >= s.next || slices.Contains(s.running, xid) }

// full completes the number of a transaction. The log has 32 bits of it; full takes the number nearest to next.
func (s snapshot) full(xid uint64) uint64 {
	const round = 1 << 32
	full := s.next&^(round-1) | xid
	switch {
	case full > s.next+round/2 && full >= round:
		return full - round
	case full+round/2 < s.next:
		return full + round
	}
	return full
}
