package expect_test

import (
	"testing"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestSamplesAreManyWhereTHOROUGHIsSet(t *testing.T) {
	t.Setenv("THOROUGH", "")
	expect.Equal(t, "by default", expect.Samples(3, 30), 3)
	t.Setenv("THOROUGH", "1")
	expect.Equal(t, "where it is set", expect.Samples(3, 30), 30)
}
