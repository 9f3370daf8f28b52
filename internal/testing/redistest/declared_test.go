package redistest_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// listeningTB keeps what a test is told, and what it would do at its end.
type listeningTB struct {
	testing.TB
	told []string
	end  []func()
}

func (l *listeningTB) Error(args ...any) { l.told = append(l.told, fmt.Sprint(args...)) }
func (l *listeningTB) Cleanup(f func())  { l.end = append(l.end, f) }

func TestAScriptThatTouchesAKeyThatItDoesNotDeclareFailsTheTest(t *testing.T) {
	t.Parallel()
	listening := &listeningTB{TB: t}
	rdb, key := redistest.DeclaredKeys(listening, shared.Client(t)), rand.Text()
	for source, refused := range map[string]string{
		"return redis.call('SET', KEYS[1], redis.call('TIME')[1])":                "",
		"return redis.pcall('EXISTS', KEYS[1], KEYS[2])":                          "",
		"#!lua flags=allow-oom\nreturn redis.call('HSET', KEYS[2], 'f', ARGV[1])": "",
		"return redis.call('GET', KEYS[1] .. ':more')":                            "undeclared key: GET " + key + ":more",
		"return redis.pcall('DEL', KEYS[1], 'DEL')":                               "undeclared key: DEL DEL",
	} {
		for range 2 { // by its source, and then by its hash
			err := redis.NewScript(source).Run(t.Context(), rdb, []string{key, key + ":2"}, "value").Err()
			if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) {
				t.Errorf("%s: %v", source, err)
			}
		}
	}
	for _, end := range listening.end {
		end()
	}
	if len(listening.told) != 4 {
		t.Errorf("the test was told %q", listening.told)
	}
}
