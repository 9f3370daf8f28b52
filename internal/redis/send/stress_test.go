package send

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redis/breaker"
	"github.com/cacheguard/go/internal/redis/script"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// raise sets a key to a larger number, so that a call may run twice, or late.
var raise = script.New("if tonumber(ARGV[1]) > tonumber(redis.call('GET', KEYS[1]) or 0) then redis.call('SET', KEYS[1], ARGV[1]) end " +
	"return ARGV[1]")

// register is a key with the numbers that were written to it.
type register struct {
	key   string
	asked atomic.Int64 // the largest that was ever sent
	acked atomic.Int64 // the largest that was acknowledged
}

// storm makes many callers use a link while everything that can go wrong does.
type storm struct {
	*testing.T
	link    *Link
	proxy   *redistest.Proxy
	keys    []*register
	answers atomic.Int64
}

// outcome checks an error.
func (s *storm) outcome(ctx context.Context, err error) {
	var answer redis.Error
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) || errors.As(err, &answer) {
		s.Errorf("an error that nothing explains: %v", err)
	}
	if errors.Is(err, breaker.ErrOpen) {
		time.Sleep(time.Millisecond) // leave the processor to those who are not refused
	}
}

func (s *storm) write(ctx context.Context, r *register) {
	n := r.asked.Add(1)
	word := strconv.FormatInt(n, 10)
	cmd, err := s.link.Do(ctx, r.key, &Call{
		Script: &script.Call{Script: raise, Keys: []string{r.key}, Args: []any{word}},
		Rank:   Rank(rand.IntN(int(ranks))), Size: rand.IntN(2) * rand.IntN(2*maxCarried),
		Late: func(Reply, error) {},
	})
	if err != nil {
		s.outcome(ctx, err)
		return
	}
	if got, err := cmd.Text(); err != nil || got != word {
		s.Errorf("call %s of %s has the reply %q, %v", word, r.key, got, err)
	}
	s.answers.Add(1)
	for {
		old := r.acked.Load()
		if old >= n || r.acked.CompareAndSwap(old, n) {
			return
		}
	}
}

func (s *storm) read(ctx context.Context, r *register) {
	atLeast := r.acked.Load()
	read, err := s.link.Get(ctx, r.key)
	if err == nil {
		err = read.Err
	}
	if err != nil {
		s.outcome(ctx, err)
		return
	}
	got, _ := strconv.ParseInt(string(read.Raw), 10, 64) // absent: 0
	if atMost := r.asked.Load(); got < atLeast || got > atMost {
		s.Errorf("%s: read %d, and from %d to %d may be there", r.key, got, atLeast, atMost)
	}
	s.answers.Add(1)
}

// caller asks again and again, and gives up every now and then.
func (s *storm) caller(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		ctx, cancel := context.WithCancel(context.Background())
		if rand.IntN(4) == 0 {
			time.AfterFunc(rand.N(2*time.Millisecond), cancel)
		}
		r := s.keys[rand.IntN(len(s.keys))]
		if rand.IntN(3) == 0 {
			s.write(ctx, r)
		} else {
			s.read(ctx, r)
		}
		cancel()
		time.Sleep(rand.N(2 * time.Millisecond)) // forty at full speed would take the processor from each other's troubles
	}
}

// trouble makes something go wrong.
func (s *storm) trouble() {
	command := []string{"get", "mget", "evalsha"}[rand.IntN(3)]
	fault := []redistest.Fault{
		redistest.DropReply, redistest.SwallowReply, redistest.CutBefore, redistest.HoldReply, redistest.Hold,
	}[rand.IntN(5)]
	rule := s.proxy.On(redistest.Command(command), fault).Times(1 + rand.IntN(3))
	select { // a while is enough: it may be that nobody sends this
	case <-rule.Hit():
	case <-time.After(20 * time.Millisecond):
	}
	time.Sleep(rand.N(40 * time.Millisecond)) // some of those it hits time out, some do not
	rule.Remove()
	switch rand.IntN(8) {
	case 0:
		s.proxy.Cut()
	case 1:
		s.proxy.Delay(rand.N(2 * time.Millisecond))
	case 2:
		s.proxy.Delay(0)
	}
}

func TestEveryCallerHasOneAnswerAndNoneThatIsOlderThanItsQuestion(t *testing.T) {
	t.Parallel()
	for _, retries := range []int{-1, 3} {
		expect.Beside(t, strconv.Itoa(retries), func(t *testing.T) {
			s := &storm{T: t, proxy: redistest.StartProxy(t, shared.Addr())}
			rdb := s.proxy.Client(t, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = retries, 300*time.Millisecond })
			s.link = New(rdb, 100*time.Millisecond, breaker.New(rdb, t.Name(), time.Second, nil))
			own := "k" + strconv.FormatUint(rand.Uint64(), 36) + "-"
			for i := range 20 {
				s.keys = append(s.keys, &register{key: own + strconv.Itoa(i)})
			}
			stop := make(chan struct{})
			var callers sync.WaitGroup
			for range 40 {
				callers.Go(func() { s.caller(stop) })
			}
			for range expect.Samples(20, 40) {
				s.trouble()
			}
			close(stop)
			callers.Wait() // each has its answer
			s.proxy.Delay(0)
			redistest.Await(t, "the link recovers", func() bool {
				before := s.answers.Load()
				s.write(t.Context(), s.keys[0])
				s.read(t.Context(), s.keys[0])
				return s.answers.Load() == before+2
			})
			s.expectRest()
			s.link.Close()
			t.Logf("%d answers", s.answers.Load())
		})
	}
}

// expectRest checks that nothing is left when all have their answers.
func (s *storm) expectRest() {
	s.Helper()
	for _, lane := range []*lane{s.link.reads[0], s.link.calls[0]} {
		redistest.Await(s.T, "a lane is at rest", func() bool {
			lane.mu.Lock()
			defer lane.mu.Unlock()
			return lane.credits == 0 && len(lane.flying) == 0 && !lane.gathering && lane.queue.empty()
		})
	}
	if q := s.link.reads[0].queue.(*readQueue); len(q.byKey) != 0 {
		s.Errorf("%d reads can be joined in an empty queue", len(q.byKey))
	}
}
