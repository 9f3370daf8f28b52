package troubles

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// pages is how many keys the fleet's other work has.
const pages = 20

// trouble is what TestDrill makes.
type trouble struct {
	section string // of the documentation: the answer
	make    func(*fleet)
	again   func(*fleet) // keeps it; nil: it stays by itself
}

var troubles = []trouble{
	{"A loader is slow", (*fleet).slowLoader, func(f *fleet) { f.ask(0, "/get?key=report&held=yes") }},
	{"An instance died while it loaded", (*fleet).deadHolder, nil},
	{"Loads wait for MaxLoads", (*fleet).saturatedMaxLoads, (*fleet).saturatedMaxLoads},
	{"Redis is frozen", (*fleet).frozenRedis, nil},
	{"Redis is full", (*fleet).fullRedis, nil},
	{"The user lacks a right", (*fleet).missingRight, nil},
	{"The subscription is dead", (*fleet).deadSubscription, nil},
	{"Entries cannot be decoded", (*fleet).damagedEntries, (*fleet).damagedEntries},
	{"A key is hot", (*fleet).hotKey, (*fleet).hotKey},
	{"A lock is not given up", (*fleet).heldLock, nil},
	{"An intent stands and nobody is there", (*fleet).forgottenIntent, (*fleet).forgottenIntent},
	{"A write does not invalidate", (*fleet).silentWrite, (*fleet).silentWrite},
	{"The feed is behind", (*fleet).unpublished, nil},
	{"A feed invalidates kinds whole", (*fleet).unmappableRow, nil},
	{"The slot fills the disk", (*fleet).unreadSlot, (*fleet).growLog},
}

// TestDrill makes one of the troubles on a fleet that has other work, and leaves it to somebody who has docs/at-3am.md for as long as
// DRILL says. TROUBLE chooses it by a number from 1; otherwise chance does. Without DRILL it ends when the trouble is made.
func TestDrill(t *testing.T) {
	t.Parallel()
	length, err := time.ParseDuration(os.Getenv("DRILL"))
	if err != nil && os.Getenv("DRILL") != "" {
		t.Fatalf("DRILL: %v", err)
	}
	number, err := strconv.Atoi(os.Getenv("TROUBLE"))
	if err != nil || number < 1 || number > len(troubles) {
		number = 1 + rand.IntN(len(troubles))
	}
	trouble := troubles[number-1]
	f := startFleet(t, trouble.section, os.Getenv("DRILL") != "" || number > len(troubles)-3) // what it has gives nothing away in a drill
	stop := f.work()
	defer stop()
	f.secret = true
	trouble.make(f)
	f.rehearse(length, trouble)
	t.Logf("It was: %s (docs/at-3am.md)", trouble.section)
}

func TestTheDrillGivesNothingAway(t *testing.T) {
	t.Parallel()
	drill := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestDrill$")
	drill.Env = append(os.Environ(), "DRILL=1ms", "TROUBLE=10") // one that is made with what shows it
	out, err := drill.CombinedOutput()
	clue, _, found := strings.Cut(string(out), "Something is wrong")
	if err != nil || !found {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(clue) {
		if !strings.HasPrefix(line, "=== ") {
			t.Errorf("before the drill it prints %q", line)
		}
	}
}

// rehearse says how to look at the fleet, and keeps it in trouble.
func (f *fleet) rehearse(length time.Duration, t trouble) {
	if length <= 0 {
		return
	}
	ctl := command(f.T)
	var card strings.Builder
	fmt.Fprintf(&card, "Something is wrong with a fleet of %d instances, Prefix shop, locks' Prefix jobs. You have %s to find out what.\n\n", processes, length)
	for i, url := range f.urls {
		fmt.Fprintf(&card, "shop-%d   %s/log   %s/metrics   %s/admin\n", i+1, url, url, url)
	}
	fmt.Fprintf(&card, "\nexport REDIS_URL=redis://app:secret@%s CACHEGUARD_PAGES=%s\ncacheguardctl() { %s \"$@\"; }\n", f.server.Addr(), f.pages(), ctl)
	fmt.Println(card.String())
	for over := time.After(length); ; {
		select {
		case <-time.After(2 * time.Second):
			if t.again != nil {
				t.again(f)
			}
		case <-over:
			return
		case <-f.Context().Done():
			return
		}
	}
}

// work lets the instances answer requests that are nobody's trouble; the function ends it.
func (f *fleet) work() (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var calls sync.WaitGroup
	for _, url := range f.urls {
		calls.Go(func() { // owner: TestDrill; stop: cancel; joined by stop
			for n := 0; ctx.Err() == nil; n++ {
				request(ctx, fmt.Sprintf("%s/get?key=page:%d", url, n%pages))
			}
		})
	}
	return func() { cancel(); calls.Wait() }
}

// request sends one, whose answer matters to nobody, and lets the instances breathe.
func request(ctx context.Context, url string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	if answer, err := client.Do(r); err == nil {
		_ = answer.Body.Close() // nothing was read
	}
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}
