package transactions

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// The process is killed between the commit and what Done would send.
func TestAProcessThatDiesBeforeDoneLeavesNoOldValue(t *testing.T) {
	if redistest.IsChild(t) {
		sellAndDie(t)
		return
	}
	forEach(t, func(w *world) {
		w.see("before", before)
		child := redistest.Child(w, "TestAProcessThatDiesBeforeDoneLeavesNoOldValue",
			"PROGRAM="+w.Name()[len("TestAProcessThatDiesBeforeDoneLeavesNoOldValue/"):], "DATABASE="+w.address, "REDIS="+w.redis.Addr())
		child.Expect("committed")
		child.Kill()
		for _, s := range w.all { // each judges by itself when the intent has expired
			redistest.Await(w, "its intent has expired", func() bool { return w.sees(s) == afterSale })
		}
		w.see("afterwards", afterSale)
	})
}

// sellAndDie is the process. As soon as its transaction is committed, it sends nothing more to Redis, and waits for its end.
func sellAndDie(t *testing.T) {
	pool := openPool(t, os.Getenv("DATABASE"))
	m := &mortal{over: func() bool {
		var stock int
		must(t, pool.QueryRow(t.Context(), `SELECT stock FROM products WHERE id = $1`, boot).Scan(&stock))
		return stock == 9
	}}
	rdb := redis.NewClient(&redis.Options{Dialer: m.dial, Addr: os.Getenv("REDIS")})
	err := open(t, os.Getenv("PROGRAM"), os.Getenv("DATABASE"), rdb, short).Buy(t.Context(), customer, boot, 1)
	t.Fatalf("it lives: %v", err)
}

// mortal is the life of a process, which ends with its commit.
type mortal struct {
	sync.Mutex // one writes at a time, and nobody after the end
	over       func() bool
}

func (m *mortal) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	return &lastWords{conn, m}, err
}

type lastWords struct {
	net.Conn
	of *mortal
}

func (l *lastWords) Write(b []byte) (int, error) {
	l.of.Lock()
	defer l.of.Unlock()
	if l.of.over() {
		fmt.Println("committed")
		select {}
	}
	return l.Conn.Write(b)
}
