package memory

import (
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/redistest"
)

var shared *redistest.Server

// TestMain lets this program be a server, too: REDISTEST_SERVER names it, and whatever is tested on a redis-server is then tested on this engine.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "--port" {
		redistest.Main(m, &shared)
	}
	fmt.Fprintln(os.Stderr, beServer(os.Args[2], slices.Contains(os.Args, behind)))
	os.Exit(1)
}

// behind is the argument for a server whose clock is two days behind.
const behind = "--clock-behind"

// beServer returns if it cannot listen. As any server, it ends when it is killed.
func beServer(port string, late bool) error {
	cfg := Config{MaxBytes: 1 << 30}
	if late {
		cfg.Now = func() time.Time { return time.Now().Add(-48 * time.Hour) }
	}
	_, e, err := open(cfg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	answerTests(e)
	var all sync.WaitGroup
	for {
		outside, err := listener.Accept()
		if err != nil {
			return err
		}
		inside := newConn(e)
		all.Go(func() { // ends with either side
			_, _ = io.Copy(inside, outside) // as above
			_ = inside.Close()              // so the other ends
		})
		all.Go(func() { // ends with either side
			_, _ = io.Copy(outside, inside) // as above
			_ = outside.Close()             // so the other ends
		})
	}
}

// answerTests adds the commands that tests send their servers beside those of the library.
func answerTests(e *engine) {
	ran := make(map[string]int64)
	e.planted = func(name string, _ *run) {
		if name != strings.ToUpper(name) {
			name = "EVALSHA" // that is a script
		}
		ran[name]++
	}
	flat := strings.NewReplacer("/", " ").Replace // a star of KEYS matches it
	info := plain["INFO"].do
	ok := func(*run, []string) any { return "OK" }
	plain["CONFIG"] = command{4, func(r *run, args []string) any { // SET maxmemory
		r.keys.max = r.integer(args[2])
		return "OK"
	}}
	plain["CLIENT"] = command{3, ok} // SETNAME
	plain["HKEYS"] = command{2, func(r *run, args []string) any {
		keys := []any{}
		for _, p := range r.fields(args[0]) {
			keys = append(keys, p.field)
		}
		return keys
	}}
	plain["KEYS"] = command{2, func(r *run, args []string) any {
		keys := []any{}
		for key := range r.keys.items {
			if is, _ := path.Match(flat(args[0]), flat(key)); is {
				keys = append(keys, key)
			}
		}
		return keys
	}}
	plain["SCRIPT"] = command{2, func(r *run, _ []string) any { // FLUSH
		clear(r.engine.scripts)
		return "OK"
	}}
	plain["INFO"] = command{1, func(r *run, args []string) any {
		text := info(r, args).(string) + "process_id:" + strconv.Itoa(os.Getpid()) + "\r\n"
		for name, n := range ran {
			text += fmt.Sprintf("cmdstat_%s:calls=%d,\r\n", strings.ToLower(name), n)
		}
		return text
	}}
}
