package link

import (
	"context"
	"slices"
	"time"

	"github.com/cacheguard/go/internal/redis/script"
)

const (
	// maxTogether is how many calls share a request at most. Redis takes some 50 µs for each, serves others in between,
	// and all have to be answered within the client's ReadTimeout, 3 seconds unless it is set.
	maxTogether = 16384

	// eachMore is by how much each call beyond maxCalls makes a request's time-out longer.
	eachMore = 150 * time.Microsecond
)

// forMore is how much longer a request with n calls may take than one with few.
func forMore(n int) time.Duration { return time.Duration(max(n-maxCalls, 0)) * eachMore }

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
	all := make([]*queuedCall, len(calls))
	for i := range calls {
		all[i] = newCall(ctx, s.lane(calls[i].Keys[0]), Call{Script: &calls[i], Rank: rank, Trail: trails[i]})
	}
	enqueueTogether(all)
	return all
}

// enqueueTogether queues the calls, so that the calls of one lane share requests.
func enqueueTogether(all []*queuedCall) {
	byLane := make(map[*lane][]*queuedCall)
	for _, c := range all {
		byLane[c.lane] = append(byLane[c.lane], c)
	}
	for l, those := range byLane {
		for some := range slices.Chunk(those, l.together()) {
			some[0].with = some[1:]
			if err := l.enqueue(some[0]); err != nil {
				for _, c := range some {
					c.answer(nil, err)
				}
			}
		}
	}
}

// together is how many calls share a request: one, if the client has no pipelines.
func (l *lane) together() int {
	if l.queue.(*callQueue).most == 1 {
		return 1
	}
	return maxTogether
}
