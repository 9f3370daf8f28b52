package mutex

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/redistest"
)

// holderProcess is what the children of tests run. It does what its parent says, a line at a time, and says when a lease
// is over, and why.
func holderProcess(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv("ADDR")})
	defer rdb.Close()
	ttl, _ := time.ParseDuration(os.Getenv("TTL"))
	k, err := New(rdb, Config{Prefix: os.Getenv("PREFIX"), TTL: ttl, Fair: os.Getenv("FAIR") == "true"})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	leases := make(map[string]*Lease)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var verb, name string
		if _, err := fmt.Sscan(lines.Text(), &verb, &name); err != nil {
			t.Fatal(err)
		}
		switch verb {
		case "lock":
			l, err := k.Lock(context.Background(), name)
			if err != nil {
				t.Fatal(err)
			}
			leases[name] = l
			fmt.Println("locked")
			context.AfterFunc(l.Context(), func() { fmt.Println(context.Cause(l.Context())) })
		case "unlock":
			fmt.Println(leases[name].Unlock(context.Background()))
		}
	}
}

// child starts a process, and says its first line to it.
func (f *fleet) child(line string) *redistest.Process {
	f.Helper()
	cfg := f.lockers[0].cfg
	child := redistest.Child(f, f.Name(), "ADDR="+shared.Addr(), "PREFIX="+cfg.Prefix, "TTL="+cfg.TTL.String(),
		fmt.Sprintf("FAIR=%v", cfg.Fair))
	child.WriteLine(line)
	return child
}

func expect(t *testing.T, child *redistest.Process, want string) {
	t.Helper()
	line, err := child.ReadLine(patient(t))
	if err != nil {
		t.Fatalf("%v, waiting for %q", err, want)
	}
	equal(t, "the child", line, want)
}
