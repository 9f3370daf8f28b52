package redistest

import (
	"crypto/rand"
	"testing"

	"github.com/redis/go-redis/v9"
)

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
