package protocol

import (
	_ "embed"

	"github.com/cacheguard/go/internal/rw"
	"github.com/cacheguard/go/internal/script"
)

//go:embed lua/prelude.lua
var prelude string

//go:embed lua/until.lua
var until string

//go:embed lua/acquire_common.lua
var acquireCommon string

//go:embed lua/acquire.lua
var acquireSource string

//go:embed lua/written.lua
var written string

//go:embed lua/fill_lone.lua
var fillLone string

//go:embed lua/fill.lua
var fillSource string

//go:embed lua/fail.lua
var failSource string

//go:embed lua/release.lua
var releaseSource string

//go:embed lua/renew.lua
var renewSource string

//go:embed lua/invalidate.lua
var invalidateSource string

//go:embed lua/begin_update.lua
var beginUpdateSource string

//go:embed lua/end_update.lua
var endUpdateSource string

//go:embed lua/put.lua
var putSource string

//go:embed lua/lock_update.lua
var lockUpdateSource string

//go:embed lua/lock_update_rest.lua
var lockUpdateRest string

//go:embed lua/unlock_lone.lua
var unlockLone string

//go:embed lua/unlock_update.lua
var unlockUpdateSource string

//go:embed lua/unlock_update_rest.lua
var unlockUpdateRest string

//go:embed lua/unlock_put.lua
var unlockPutSource string

//go:embed lua/unlock_put_rest.lua
var unlockPutRest string

//go:embed lua/renew_update.lua
var renewUpdateSource string

//go:embed lua/intend.lua
var intendSource string

//go:embed lua/renew_intend.lua
var renewIntendSource string

//go:embed lua/done.lua
var doneSource string

//go:embed lua/say.lua
var saySource string

//go:embed lua/drop_large.lua
var dropLargeSource string

//go:embed lua/inspect.lua
var inspectSource string

//go:embed lua/time.lua
var timeSource string

var (
	acquireScript    = script.New(acquireCommon + prelude + until + acquireSource)
	fillScript       = script.New(written + fillLone + prelude + until + fillSource)
	failScript       = script.New(prelude + failSource)
	releaseScript    = script.New(prelude + releaseSource)
	renewScript      = script.New(prelude + until + renewSource)
	invalidateScript = script.New(prelude + invalidateSource)

	beginUpdateScript = script.New(prelude + until + beginUpdateSource)
	endUpdateScript   = script.New(prelude + endUpdateSource)
	putScript         = script.New(written + prelude + until + putSource)
	renewUpdateScript = script.New(prelude + renewUpdateSource)

	lockUpdateScript   = script.New(rw.Acquire() + lockUpdateSource + rw.Function("begin", prelude+until+beginUpdateSource) + lockUpdateRest)
	unlockUpdateScript = script.New(rw.Release() + unlockLone + unlockUpdateSource + rw.Function("finish", prelude+endUpdateSource) + unlockUpdateRest)
	unlockPutScript    = script.New(rw.Release() + written + unlockLone + unlockPutSource +
		rw.Function("finish", prelude+until+putSource) + unlockPutRest)

	intendScript      = script.New(prelude + until + intendSource)
	renewIntendScript = script.New(prelude + until + renewIntendSource)
	doneScript        = script.New(prelude + doneSource)

	sayScript = script.New(saySource)

	inspectScript = script.New(prelude + inspectSource)

	dropLargeScript = script.New(dropLargeSource)

	timeScript = script.New(prelude + timeSource)

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
