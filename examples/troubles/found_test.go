package troubles

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// trouble is what TestDrill makes, and what finds it.
type trouble struct {
	title   string // the answer
	section string // of the documentation; empty: a row of a table
	make    func(*fleet)
	again   func(*fleet) // keeps it; nil: it stays by itself
	feed    bool         // the service has one

	find string // the arguments of cacheguardctl, or log: somebody reads that
	says string // what it says then
}

const check = "--prefix shop --lock-prefix jobs check"

var troubles = []trouble{
	{"A loader is slow", "A loader is slow", (*fleet).slowLoader, func(f *fleet) { f.ask(0, "/get?key=report&held=yes") }, false, check, `a load of "report" has run for`},
	{"An instance died while it loaded", "An instance died while it loaded", (*fleet).deadHolder, nil, false, check, "connection refused"},
	{"Loads wait for MaxLoads", "Loads wait for MaxLoads", (*fleet).saturatedMaxLoads, (*fleet).saturatedMaxLoads, false, check, "for MaxLoads, which is 2"},
	{"Redis is frozen", "Redis is frozen", (*fleet).frozenRedis, nil, false, check, "Redis cannot be reached from here"},
	{"Redis is slow", "Redis is slow", (*fleet).slowRedis, nil, false, check, "Redis takes longer than the loads that it saves"},
	{"Redis is full", "Redis is full", (*fleet).fullRedis, nil, false, check, "full, values are not stored"},
	{"The user lacks a right", "The user lacks a right", (*fleet).missingRight, nil, false, check, "NOPERM"},
	{"The subscription is dead", "The subscription is dead", (*fleet).deadSubscription, nil, false, check, "messages do not arrive"},
	{"Entries cannot be decoded", "Entries cannot be decoded", (*fleet).damagedEntries, (*fleet).damagedEntries, false, check, "entries could not be decoded lately"},
	{"A key is hot", "A key is hot", (*fleet).hotKey, (*fleet).hotKey, false, check, `gets/s for "home"`},
	{"A lock is not given up", "A lock is not given up", (*fleet).heldLock, nil, false, "--lock-prefix jobs locks show import", "shop-1"},
	{"A transaction is forgotten", "An intent stands and nobody is there", (*fleet).forgottenIntent, (*fleet).forgottenIntent, false, check, `an intent on ["report"]`},
	{"An Update hangs", "An intent stands and nobody is there", (*fleet).hangingWrite, (*fleet).hangingWrite, false, check, `an update of ["report"]`},
	{"Loads fail", "Loads fail", (*fleet).lockedTable, (*fleet).lockedTable, false, check, "of loads fail"},
	{"A write does not invalidate", "A write does not invalidate", (*fleet).silentWrite, nil, false, "--prefix shop inspect price:42", "stored"},
	{"Nobody may subscribe", "The subscription is dead", (*fleet).neverSubscribed, nil, false, check, "channel"},

	{"Redis is gone", "", (*fleet).goneRedis, nil, false, check, "Redis cannot be reached from here"},
	{"Redis lost its data", "", (*fleet).lostData, nil, false, "log", "all entries are invalid or gone"},
	{"The cache is bypassed", "", (*fleet).bypassed, nil, false, check, "the cache is bypassed"},
	{"The password has changed", "", (*fleet).otherPassword, nil, false, check, "WRONGPASS"},
	{"Redis is a replica", "", (*fleet).replica, nil, false, check, "READONLY"},
	{"Redis lacks replicas", "", (*fleet).lacksReplicas, nil, false, check, "NOREPLICAS"},
	{"A key is mistyped", "", (*fleet).mistyped, (*fleet).mistyped, false, check, `keys like "pgae" were invalidated`},
	{"Values are too large", "", (*fleet).largeValue, (*fleet).largeValue, false, check, "values could not be stored lately"},
	{"A loader panics", "", (*fleet).panics, (*fleet).panics, false, check, "oops"},
	{"An instance hangs", "", (*fleet).hangingInstance, nil, false, check, "deadline exceeded"},
	{"Redis evicts", "", (*fleet).evicting, nil, false, check, "locks may be evicted"},
	{"Redis has too many clients", "", (*fleet).tooManyClients, nil, false, check, "Redis does not answer"},
	{"The holder of a lock died", "", (*fleet).deadLockHolder, nil, false, check, "connection refused"},

	{"The feed is behind", "The feed is behind", (*fleet).unpublished, nil, true, check, "changes wait to be invalidated"},
	{"A feed invalidates kinds whole", "A feed invalidates kinds whole", (*fleet).unmappableRow, nil, true, check, "kinds were invalidated whole"},
	{"The slot fills the disk", "The slot fills the disk", (*fleet).unreadSlot, (*fleet).growLog, true, "cdc status", "none of these instances reads"},
}

// TestEachTroubleIsFoundAtNight has somebody look for each trouble who has docs/at-3am.md alone: it runs the command of the trouble's row until that
// names it, beside the fleet's other work, and says how often and how long. It draws three; TROUBLES=all tries each.
func TestEachTroubleIsFoundAtNight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/at-3am.md")
	expect.ErrorIs(t, err)
	all := make(map[string]trouble)
	for _, one := range troubles {
		all[one.title] = one
		expect.Equal(t, one.title+" has a row", hasRow(string(text), one), true)
	}
	left := 3
	if os.Getenv("TROUBLES") == "all" {
		left = len(all)
	}
	for title, one := range all {
		if left--; left < 0 {
			break
		}
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, one.section, one.feed)
			defer f.work()()
			one.make(f)
			began, commands, said := time.Now(), 0, ""
			defer func() {
				if t.Failed() {
					t.Log(said)
				}
			}()
			redistest.Await(t, "the command says "+one.says, func() bool {
				if one.again != nil {
					one.again(f)
				}
				commands++
				said = f.look(one.find)
				return strings.Contains(said, one.says)
			})
			t.Logf("found: %s, with %s, %d times, in %.0f s", title, one.find, commands, time.Since(began).Seconds())
		})
	}
}

// look reads the logs, or what the command says.
func (f *fleet) look(find string) (said string) {
	if find != "log" {
		_, said = f.runAt(f.pages(), strings.Fields(find)...)
		return said
	}
	for i := range f.urls {
		said += f.ask(i, "/log")
	}
	return said
}

// hasRow reports whether the guide has a row for the trouble, with its command and what that says.
func hasRow(guide string, one trouble) bool {
	for line := range strings.Lines(guide) {
		if strings.HasPrefix(line, "| "+one.title+" |") || strings.HasPrefix(line, "| ["+one.title+"](") {
			return strings.Contains(line, "| `"+strings.TrimPrefix(one.find, "--prefix shop --lock-prefix jobs ")+"` |") && strings.Contains(line, one.says)
		}
	}
	return false
}
