package script

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

// publishing is what surrounds the scripts that call publish(channel, message).
//
//go:embed lua/publishing.lua
var publishing string

// refusal begins the reply of a script some of whose messages Redis has refused. The script's own reply follows, and
// then channels and messages.
const refusal = "\x00refused"

// withPublish gives a script that calls it the function publish.
func withPublish(src string) string {
	if !strings.Contains(src, "publish(") {
		return src
	}
	return strings.Replace(publishing, "SCRIPT", src, 1)
}

// unpublished takes what Redis has refused to publish out of the reply to a script, and returns the commands that
// publish it.
func unpublished(ctx context.Context, cmd *redis.Cmd) (publish []*redis.Cmd) {
	reply, ok := cmd.Val().([]any)
	if !ok || len(reply) < 2 || reply[0] != refusal {
		return nil
	}
	for i := 2; i+1 < len(reply); i += 2 {
		publish = append(publish, redis.NewCmd(ctx, "publish", reply[i], reply[i+1]))
	}
	switch own := reply[1].(type) {
	case nil:
		cmd.SetVal(nil)
		cmd.SetErr(redis.Nil)
	case error:
		cmd.SetVal(nil)
		cmd.SetErr(own)
	default:
		cmd.SetVal(own)
	}
	return publish
}

// PublishAll sends what Redis has refused to publish within the scripts of a pipeline that has run, in one more.
// Waiters have timers, and a user may have no right to publish: if it fails, nobody is told.
func PublishAll(ctx context.Context, pipe redis.Pipeliner, cmds ...*redis.Cmd) {
	for _, cmd := range cmds {
		for _, p := range unpublished(ctx, cmd) {
			_ = pipe.Process(ctx, p) // only queues
		}
	}
	if pipe.Len() > 0 {
		Exec(ctx, pipe)
	}
}
