package memory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cacheguard/go/internal/cache/epoch"
	"github.com/cacheguard/go/internal/cache/protocol"
	"github.com/cacheguard/go/internal/lock/queue"
	"github.com/cacheguard/go/internal/lock/rw"
	"github.com/cacheguard/go/internal/redis/script"
)

// sources are the scripts of the library as they are sent, by the names of ported.
func sources(t testing.TB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, name := range []string{
		"acquire", "fill", "fail", "release", "renew", "invalidate", "begin_update", "end_update", "put", "lock_update", "unlock_update",
		"unlock_put", "intend", "renew_intend", "done", "renew_update", "time", "inspect", "say", "drop_large",
	} {
		all[name] = protocol.Source(name)
	}
	for _, name := range []string{"make", "revoke", "intend_tag", "done_tag"} {
		all["epoch/"+name] = epoch.Source(name)
	}
	locks := rw.Protocol()
	for name, s := range map[string]*script.Script{
		"acquire": locks.Acquire, "heartbeat": locks.Heartbeat, "renew": locks.Renew, "release": locks.Release,
		"revoke": locks.Revoke, "inspect": locks.Inspect, "downgrade": locks.Downgrade, "upgrade": locks.Upgrade,
	} {
		all["rw/"+name] = s.Source()
	}
	read := func(folder string, names ...string) string {
		var text strings.Builder
		for _, name := range names {
			source, err := os.ReadFile(filepath.Join("..", folder, name+".lua"))
			if err != nil {
				t.Fatal(err)
			}
			text.Write(source)
		}
		return text.String()
	}
	add := func(name, source string) { all[name] = script.New(source).Source() }
	add("renew_alone", read("internal/lock/queue/lua", "renew_alone"))
	add("mark", read("internal/redis/send/lua", "mark"))
	add("echo", read("internal/redis/wake/lua", "echo"))
	for name, before := range map[string]string{"lock": "lock_free", "unlock": "unlock_lone", "park": "", "renew": "", "revoke": "", "inspect": ""} {
		begin := read("mutex/lua", "fields")
		if before != "" {
			begin += read("mutex/lua", before)
		}
		add("mutex/"+name, begin+read("mutex/lua", "prelude")+queue.Settled(read("mutex/lua", name)))
	}
	for _, name := range []string{"acquire", "heartbeat", "renew", "release", "revoke", "inspect"} {
		begin := read("semaphore/lua", "fields") + queue.Prelude() + read("semaphore/lua", "prelude")
		add("semaphore/"+name, begin+queue.Settled(read("semaphore/lua", name)))
	}
	add("cas/swap", read("cas/lua", "prelude", "swap"))
	add("cas/delete", read("cas/lua", "prelude", "delete"))
	add("segment/create", read("segment/lua", "create"))
	add("segment/take", read("segment/lua", "take"))
	for _, name := range []string{"undo", "put", "send"} {
		add("segment/"+name, read("segment/lua", "prelude", name))
	}
	add("cdc/claim", read("cdc/mysql", "claim"))
	add("cdc/place", read("cdc/mysql", "place"))
	add("cdc/cache", read("cdc/internal/engine", "cache"))
	return all
}

func TestEachScriptOfTheLibraryIsPorted(t *testing.T) {
	t.Parallel()
	all := sources(t)
	for name, source := range all {
		if hash := essence(source); ported[hash].name != name {
			t.Errorf("%s has no function here, or has changed since that was written: \"%s\"", name, hash)
		}
	}
	for hash, e := range ported {
		if all[e.name] == "" || essence(all[e.name]) != hash {
			t.Errorf("%s is none of the library's, or no more", e.name)
		}
	}
}
