package wake

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
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
		expect.Equal(t, "probe()", l.probe(), want)
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
	expect.Equal(t, "patience before anybody waited", l.patience(), idleSilence)
	w := in.Watch("k")
	defer w.Stop()
	expect.Equal(t, "patience while nobody says that he relies on messages", l.patience(), idleSilence)
	w.Waiting()
	expect.Equal(t, "patience for whom somebody waits", l.patience(), busySilence)
	in.lastWaiting.Add(-int64(busyFor))
	expect.Equal(t, "patience a while later", l.patience(), idleSilence)
}

// What others wrote to Redis may say that a lease ends at any time. Whoever waits for it must not ask without a pause.
func TestALeaseThatEndedLongAgoIsAskedForAfterAPause(t *testing.T) {
	t.Parallel()
	for _, left := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		waited := time.Duration(0)
		for range 1000 {
			waited += Patience(left, true, 0)
		}
		if waited < 1000*expiryJitter/4 {
			t.Errorf("%v left: asked 1000 times within %v", left, waited)
		}
	}
}

func TestFrameIsParsed(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string][2]string{
		"1:kbody":          {"k", "body"},
		"3:keybody":        {"key", "body"},
		"1:k":              {"k", ""},
		"0:":               {"", ""},
		"0:body":           {"", "body"},
		"3:a:bbody":        {"a:b", "body"},
		"3:1:k:rest":       {"1:k", ":rest"},
		"2:\xff\x00\x00":   {"\xff\x00", "\x00"},
		"4:\r\n\r\nbody":   {"\r\n\r\n", "body"},
		"10:0123456789abc": {"0123456789", "abc"},
	} {
		key, body, ok := parseFrame(payload)
		if !ok || key != want[0] || body != want[1] {
			t.Errorf("parseFrame(%q) = %q, %q, %v; want %q", payload, key, body, ok, want)
		}
	}
}

func TestWhatIsNoFrameIsRefused(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		"", ":", "key", "3", "x:key", ":key", " 3:key", "-1:key", "4:key", "1:", "3.0:key", "0x3:key",
		"99999999999999999999:key", "9223372036854775807:key", "-9223372036854775808:key",
	} {
		if key, body, ok := parseFrame(payload); ok || key != "" || body != "" {
			t.Errorf("parseFrame(%q) = %q, %q, %v; want nothing", payload, key, body, ok)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, seed := range []string{"", "1:kbody", "0:", "3:a:b", "-1:k", "4:key", "+1:k", "001:k", "\xff:\x00"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if key, body, ok := parseFrame(Frame(a, b)); !ok || key != a || body != b {
			t.Errorf("parseFrame(Frame(%q, %q)) = %q, %q, %v", a, b, key, body, ok)
		}
		if key, body, ok := parseFrame(a); ok && !strings.HasSuffix(a, ":"+key+body) {
			t.Errorf("parseFrame(%q) = %q, %q: not what was sent", a, key, body)
		}
	})
}
