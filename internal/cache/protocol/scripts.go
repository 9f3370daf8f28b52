package protocol

import (
	"embed"

	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
)

//go:embed lua/*.lua
var files embed.FS

func text(names ...string) string { return script.Text(files, names...) }

func compile(names ...string) *script.Script { return script.Compile(files, names...) }

var (
	acquireScript    = compile("acquire_common", "prelude", "until", "acquire")
	fillScript       = compile("written", "fill_lone", "prelude", "until", "fill")
	failScript       = compile("prelude", "fail")
	releaseScript    = compile("prelude", "release")
	renewScript      = compile("prelude", "until", "renew")
	invalidateScript = compile("invalidate_lone", "prelude", "invalidate")

	beginUpdateScript = compile("prelude", "until", "begin_update")
	endUpdateScript   = compile("prelude", "end_update")
	putScript         = compile("written", "prelude", "until", "put")
	renewUpdateScript = compile("prelude", "renew_update")

	lockUpdateScript   = script.New(rw.Acquire() + text("lock_update") + rw.Function("begin", text("prelude", "until", "begin_update")) + text("lock_update_rest"))
	unlockUpdateScript = script.New(rw.Release() + text("unlock_lone", "unlock_update") + rw.Function("finish", text("prelude", "end_update")) + text("unlock_update_rest"))
	unlockPutScript    = script.New(rw.Release() + text("written", "unlock_lone", "unlock_put") + rw.Function("finish", text("prelude", "until", "put")) + text("unlock_put_rest"))

	intendScript      = compile("prelude", "until", "intend")
	renewIntendScript = compile("prelude", "until", "renew_intend")
	doneScript        = compile("prelude", "done")

	sayScript = compile("say")

	inspectScript = compile("prelude", "inspect")

	dropLargeScript = compile("drop_large")

	timeScript = compile("prelude", "time")

	existsCommand  = script.Command("exists")
	delCommand     = script.Command("del")
	publishCommand = script.Command("publish")
)

// Source is the text of the script as Redis gets it, for tests that pick it out of the traffic. The name is the name
// of its file in lua/. It returns an empty text if there is no such script.
func Source(name string) string {
	return map[string]*script.Script{
		"acquire": acquireScript, "fill": fillScript, "fail": failScript, "release": releaseScript, "renew": renewScript,
		"invalidate": invalidateScript, "begin_update": beginUpdateScript, "end_update": endUpdateScript, "put": putScript,
		"lock_update": lockUpdateScript, "unlock_update": unlockUpdateScript, "unlock_put": unlockPutScript,
		"intend": intendScript, "renew_intend": renewIntendScript, "done": doneScript,
		"renew_update": renewUpdateScript, "time": timeScript, "inspect": inspectScript, "say": sayScript, "drop_large": dropLargeScript,
	}[name].Source()
}
