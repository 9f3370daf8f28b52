package wake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// publisher is a node that does as it likes with a PUBLISH.
type publisher struct {
	Redis
	publish func(ctx context.Context) error
}

func (p *publisher) Process(ctx context.Context, _ redis.Cmder) error { return p.publish(ctx) }

// probing runs a probe, on virtual time, of a link to a node that publishes like this.
func probing(t *testing.T, want bool, publish func(ctx context.Context, l *link) error) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := newHub(nil)
		defer in.close()
		var l *link
		l = newLink(in, &publisher{publish: func(ctx context.Context) error { return publish(ctx, l) }})
		if got := l.probe(); got != want {
			t.Errorf("probe() = %v, want %v", got, want)
		}
	})
}

func TestProbeThatComesBackIsHeard(t *testing.T) {
	probing(t, true, func(_ context.Context, l *link) error {
		l.hear()
		return nil
	})
}

func TestProbeMayComeBackAfterThePublishIsAnswered(t *testing.T) {
	probing(t, true, func(_ context.Context, l *link) error {
		time.AfterFunc(probeDeadline/2, l.hear)
		return nil
	})
}

// The deadline is for the way back: a Redis that was slow to publish has not lost the subscription.
func TestProbeMayComeBackAfterASlowPublish(t *testing.T) {
	probing(t, true, func(ctx context.Context, l *link) error {
		<-ctx.Done() // go-redis may answer later than its context says
		time.AfterFunc(probeDeadline/2, l.hear)
		return nil
	})
}

func TestProbeThatNeverComesBackIsMissed(t *testing.T) {
	probing(t, false, func(context.Context, *link) error { return nil })
}

func TestProbeIsNotAnsweredByOldNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := newHub(nil)
		defer in.close()
		l := newLink(in, &publisher{publish: func(context.Context) error { return nil }})
		l.hear()
		if l.probe() {
			t.Error("heard what had come in before")
		}
	})
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func TestProbeThatMayNotBePublishedSaysNothing(t *testing.T) {
	probing(t, true, func(context.Context, *link) error { return refusal("NOPERM no") })
}

func TestProbeThatCannotBePublishedIsMissed(t *testing.T) {
	probing(t, false, func(context.Context, *link) error { return errors.New("down") })
}

// go-redis may hold a command far longer than its context says.
func TestProbeDoesNotWaitForAPublishWithoutAReply(t *testing.T) {
	probing(t, false, func(context.Context, *link) error {
		time.Sleep(time.Minute) // on virtual time
		return nil
	})
}

func TestProbeSaysNothingWhenTheLinkIsStopped(t *testing.T) {
	probing(t, true, func(_ context.Context, l *link) error {
		l.stop()
		return nil
	})
}

func TestSubscriptionIsWatchedCloselyForAWhileAfterAWait(t *testing.T) {
	t.Parallel()
	in := newHub(nil)
	defer in.close()
	l := newLink(in, nil)
	if l.patience() != idleSilence {
		t.Error("watched closely before anybody waited")
	}
	w := in.Watch("k")
	defer w.Stop()
	if l.patience() != idleSilence {
		t.Error("watched closely while nobody says he relies on messages")
	}
	w.Waiting()
	if l.patience() != busySilence {
		t.Error("not watched closely")
	}
	in.lastWaiting.Add(-int64(busyFor))
	if l.patience() != idleSilence {
		t.Error("watched closely for ever")
	}
}
