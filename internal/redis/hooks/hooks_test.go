package hooks

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// hook does nothing.
type hook struct{}

func (hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
func (hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// When this fails, go-redis keeps its hooks elsewhere than none looks for them.
func TestHooksOfAClientAreFound(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]*redis.Client{
		"server":   redis.NewClient(&redis.Options{}),
		"sentinel": redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}}),
	} {
		if !none(client) {
			t.Errorf("%s: a new client has hooks", name)
		}
		client.AddHook(hook{})
		if none(client) {
			t.Errorf("%s: the hook was not found", name)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClientOfAnUnknownKindMayHaveHooks(t *testing.T) {
	t.Parallel()
	if none(nil) || none(new(redis.Client)) {
		t.Error("nothing was looked at, and no hooks were found")
	}
}

// When this fails, such a copy keeps its hooks, and can be used for a client that has some: there is nothing to find out any more.
func TestACopyWithAnotherTimeOutHasNoHooks(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	client.AddHook(hook{})
	if !none(client.WithTimeout(time.Second)) {
		t.Error("the copy has the client's hooks")
	}
}
