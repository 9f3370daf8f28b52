package scenario

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cacheguard/go/bench/internal/rivals"
)

// TooLong is when a call is given up, and its run with it.
const TooLong = 20 * time.Second

// Forever is a TTL longer than any run.
const Forever = time.Hour

// Together runs each for 0 to n-1 at the same moment, with contexts of their own, as requests have. It returns when all
// have ended, with one of their errors.
func Together(ctx context.Context, n int, each func(ctx context.Context, i int) error) error {
	var ready, running sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	ready.Add(n)
	for i := range n {
		running.Go(func() { // owner: Together; stop: TooLong; joined below
			ctx, cancel := context.WithTimeout(ctx, TooLong)
			defer cancel()
			ready.Done()
			<-start
			errs[i] = each(ctx, i)
		})
	}
	ready.Wait()
	close(start)
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// openCaches makes n instances. The caller closes them.
func openCaches(lib rivals.CacheLibrary, s rivals.Setup, n int) ([]rivals.Cache, error) {
	var caches []rivals.Cache
	for range n {
		c, err := lib.Open(s)
		if err != nil {
			return nil, errors.Join(err, CloseAll(caches))
		}
		caches = append(caches, c)
	}
	return caches, nil
}

// CloseAll closes all of them, also when closing one fails.
func CloseAll[C interface{ Close() error }](all []C) (err error) {
	for _, c := range all {
		err = errors.Join(err, c.Close())
	}
	return err
}

// NewKey is a key that nobody has.
func NewKey() string { return rivals.Prefix + rand.Text() }

// newKeys are n keys that nobody has, and their values.
func newKeys(n, size int) (keys []string, values [][]byte) {
	prefix := NewKey()
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s:%d", prefix, i))
		values = append(values, ValueOf(keys[i], size))
	}
	return keys, values
}

// ValueOf makes a value that no other key has.
func ValueOf(key string, size int) []byte {
	return []byte(strings.Repeat(key+" ", size/len(key)+1)[:size])
}

// Check looks at the size and at the beginning, which has the key: comparing all of it would cost more than a read
// from memory does.
func Check(key string, got, want []byte, err error) error {
	const beginning = 64
	n := min(beginning, len(want))
	if err == nil && (len(got) != len(want) || !bytes.Equal(got[:n], want[:n])) {
		err = fmt.Errorf("%s: a wrong value of %d bytes", key, len(got))
	}
	return err
}

var errLoaded = errors.New("a hit was loaded")

func neverLoad(context.Context) ([]byte, error) { return nil, errLoaded }

// Pause waits, and reports whether it waited for all of d.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Thousands writes a number as people do.
func Thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1000), n%1000)
}

// cord is an instance's only way to Redis. Cutting it is, for everybody else, the instance's death.
type cord struct {
	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

var errCut = errors.New("the cord is cut")

func (c *cord) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isCut {
		return nil, errors.Join(errCut, conn.Close())
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

func (c *cord) cut() {
	c.mu.Lock()
	c.isCut = true
	conns := c.conns
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close() // closed already by its client
	}
}
