package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
)

const (
	valueSize = 1 << 10
	ttl       = time.Hour // longer than any run
	poolSize  = 20        // go-redis' own choice on two cores, fixed so that all machines measure the same
)

// cache is one instance of a service that caches with one of the libraries.
type cache interface {
	// get asks for the key, as a user of the library would, and returns an error unless it gets want.
	get(ctx context.Context, key string, want []byte, load loader) error
}

// loader is the slow source of a value.
type loader func() ([]byte, error)

var errLoaded = errors.New("a hit was loaded")

func neverLoad() ([]byte, error) { return nil, errLoaded }

// library makes instances, each with a Redis client of its own, as each process has.
type library struct {
	name    string
	open    func(b *testing.B) cache
	inboxes int64 // how many instances are woken by PUBLISH in a stampede
}

func openAll(b *testing.B, lib library, n int) []cache {
	b.Helper()
	caches := make([]cache, n)
	for i := range caches {
		caches[i] = lib.open(b)
	}
	return caches
}

func client(b *testing.B) *redis.Client {
	return shared.Client(b, func(o *redis.Options) { o.PoolSize = poolSize })
}

// valueOf makes a value that no other key has.
func valueOf(key string) []byte {
	return []byte(strings.Repeat(key+" ", valueSize/len(key)+1)[:valueSize])
}

// check looks at the size and at the beginning, which has the key: comparing all of it would cost more than a read
// from memory does.
func check(key string, got, want []byte, err error) error {
	const beginning = 64
	if err == nil && (len(got) != len(want) || !bytes.Equal(got[:beginning], want[:beginning])) {
		return wrong(key, len(got))
	}
	return err
}

// checkString is check for the libraries whose values are strings.
func checkString(key, got string, want []byte, err error) error {
	return check(key, unsafe.Slice(unsafe.StringData(got), len(got)), want, err)
}

func wrong(key string, size int) error {
	return fmt.Errorf("%s: a wrong value of %d bytes", key, size)
}
