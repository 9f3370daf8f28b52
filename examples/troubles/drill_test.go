package troubles

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	f := startFleet(t, trouble.section, os.Getenv("DRILL") != "" || trouble.feed) // what it has gives nothing away in a drill
	stop := f.work()
	defer stop()
	f.secret = true
	trouble.make(f)
	f.rehearse(length, number)
	t.Logf("It was: %s (docs/at-3am.md)", trouble.title)
}

func TestTheDrillEndsWhenSomebodyNamesTheTrouble(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	drill := exec.CommandContext(ctx, os.Args[0], "-test.v", "-test.run=^TestDrill$")
	drill.Env = append(os.Environ(), "DRILL=1h", "TROUBLE=11")
	out, err := drill.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := drill.Start(); err != nil {
		t.Fatal(err)
	}
	desk, end := "", ""
	answer := func(it string) string {
		r, err := client.PostForm(desk, url.Values{"it": {it}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		said, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(said)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); end += lines.Text() + "\n" {
		if _, rest, found := strings.Cut(lines.Text(), "answer() { curl -s --data-urlencode \"it=$*\" "); found {
			desk, _, _ = strings.Cut(rest, ";")
			if said := answer("Redis is full"); !strings.HasPrefix(said, "No.") {
				t.Errorf("a wrong answer: %q", said)
			}
			if said := answer("11"); said != "Yes: A lock is not given up\n" {
				t.Errorf("the answer: %q", said)
			}
		}
	}
	if err := drill.Wait(); err != nil || desk == "" || !strings.Contains(end, "It was: A lock is not given up") {
		t.Errorf("%v: %s", err, end)
	}
}

func TestTheDrillGivesNothingAway(t *testing.T) {
	t.Parallel()
	drill := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestDrill$")
	drill.Env = append(os.Environ(), "DRILL=1ms", "TROUBLE=11") // one that is made with what shows it
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

// judge answers answers: whoever names the trouble, by number or title, or gives up with an empty answer, ends the drill.
func judge(number int, ended func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch it := r.FormValue("it"); {
		case it == "":
			ended()
			_, _ = fmt.Fprintf(w, "It was: %s\n", troubles[number-1].title)
		case it == strconv.Itoa(number) || strings.EqualFold(it, troubles[number-1].title):
			ended()
			_, _ = fmt.Fprintf(w, "Yes: %s\n", troubles[number-1].title)
		default:
			_, _ = fmt.Fprintln(w, "No. Look again.")
		}
	})
}

// rehearse says how to look at the fleet, and keeps it in trouble until somebody has answered.
func (f *fleet) rehearse(length time.Duration, number int) {
	if length <= 0 {
		return
	}
	t, ctl := troubles[number-1], command(f.T)
	answered, ended := context.WithCancel(f.Context())
	defer ended()
	desk := httptest.NewServer(judge(number, ended))
	defer desk.Close()
	var card strings.Builder
	fmt.Fprintf(&card, "Something is wrong with a fleet of %d instances, Prefix shop, locks' Prefix jobs. You have %s to find out what.\n\n", processes, length)
	for i, url := range f.urls {
		fmt.Fprintf(&card, "shop-%d   %s/log   %s/metrics   %s/admin\n", i+1, url, url, url)
	}
	fmt.Fprintf(&card, "\nexport REDIS_URL=redis://app:secret@%s CACHEGUARD_PAGES=%s\ncacheguardctl() { %s \"$@\"; }\n", f.server.Addr(), f.pages(), ctl)
	fmt.Fprintf(&card, "answer() { curl -s --data-urlencode \"it=$*\" %s; } # by its number below or its title; without one, you give up\n\n", desk.URL)
	for i, one := range troubles {
		fmt.Fprintf(&card, "%2d  %s\n", i+1, one.title)
	}
	fmt.Println(card.String())
	for over := time.After(length); ; {
		select {
		case <-time.After(2 * time.Second):
			if t.again != nil {
				t.again(f)
			}
		case <-over:
			return
		case <-answered.Done():
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
