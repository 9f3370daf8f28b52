package send

import (
	"context"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

// AskTogether is Ask for many calls, which share requests, and are not sent again for other than a broken connection.
// Each has its own error.
func (s *Sender) AskTogether(ctx context.Context, calls []script.Call, trails []*Trail) ([]Reply, []error) {
	replies, errs := make([]Reply, len(calls)), make([]error, len(calls))
	if len(calls) == 1 {
		replies[0], errs[0] = s.Ask(ctx, calls[0], trails[0])
		return replies, errs
	}
	for i, c := range s.enqueueTogether(ctx, Ordinary, calls, trails) {
		replies[i], errs[i] = c.wait()
	}
	return replies, errs
}

// ReleaseTogether is Release for many calls, which share requests.
func (s *Sender) ReleaseTogether(calls []script.Call, worth time.Duration) ([]Reply, []error) {
	replies, errs := make([]Reply, len(calls)), make([]error, len(calls))
	if len(calls) == 1 {
		replies[0], errs[0] = s.Release(calls[0], worth)
		return replies, errs
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.link.timeout+forMore(len(calls)))
	defer cancel()
	for i, c := range s.enqueueTogether(ctx, EndsWork, calls, make([]*Trail, len(calls))) {
		replies[i], errs[i] = c.wait()
		if !settled(errs[i]) {
			s.release(calls[i], worth)
		}
	}
	return replies, errs
}

// enqueueTogether queues the calls, so that those of one part of the keyspace share requests.
func (s *Sender) enqueueTogether(ctx context.Context, rank Rank, calls []script.Call, trails []*Trail) []*queuedCall {
	all := newCallsTogether(ctx, len(calls), func(i int) (*lane, Call) {
		return s.lane(calls[i].Keys[0]), Call{Script: &calls[i], Rank: rank, Trail: trails[i]}
	})
	enqueueTogether(all)
	return all
}
