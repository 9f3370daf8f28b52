package redistest

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout = 10 * time.Second // who is down refuses at once
	ioTimeout   = Patience         // go-redis asks again after it; see AsksAgain
	nodeTimeout = 3 * time.Second  // of clients that look for another node then
	bufferSize  = 4 << 10          // of a connection, of which tests make thousands: go-redis' 32 KiB are work for the garbage collector
)

// AsksAgain has go-redis give up a request that is not answered, and send it again. It is for tests in which it should: others may need minutes.
// A RedisTimeout of Brisk is up before, so that a test can say which of the two it was.
func AsksAgain(o *redis.Options) { o.ReadTimeout = 2 * Brisk }

// newClient makes a client for tests. It repeats commands that fail as a default client does, because the code under test must
// live with that, but it dials once, so that a server that is down is noticed quickly, and it sends nothing on a new
// connection but HELLO.
func newClient(addr string, tweaks ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{
		Addr:                     addr,
		DialTimeout:              dialTimeout,
		ReadTimeout:              ioTimeout,
		WriteTimeout:             ioTimeout,
		DialerRetries:            1,
		ReadBufferSize:           bufferSize,
		WriteBufferSize:          bufferSize,
		DisableIdentity:          true,
		MaintNotificationsConfig: quiet(),
	}
	for _, tweak := range tweaks {
		tweak(o)
	}
	return redis.NewClient(o)
}

func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// closeAtEnd closes a client at the end of the test. A test may have closed it before.
func closeAtEnd[C interface{ Close() error }](tb testing.TB, client C) C {
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// As makes a user with the rules, as ACL SETUSER takes them, and returns the tweak that makes a client log in as that user.
func (s *Server) As(tb testing.TB, rules ...string) func(*redis.Options) {
	tb.Helper()
	name := "user-" + rand.Text()
	args := []any{"acl", "setuser", name, "on", ">secret"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	if err := s.Client(tb).Do(tb.Context(), args...).Err(); err != nil {
		tb.Fatal(err)
	}
	return User(name, "secret")
}

// User is the tweak that makes a client log in as that user.
func User(name, password string) func(*redis.Options) {
	return func(o *redis.Options) { o.Username, o.Password = name, password }
}
