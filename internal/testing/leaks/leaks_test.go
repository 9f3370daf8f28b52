package leaks

import (
	"strings"
	"testing"
	"time"

	"github.com/cacheguard/go/internal/testing/expect"
)

func TestMain(m *testing.M) { Main(m) }

// stays is a goroutine that ends when the second channel is closed.
func stays(began chan<- struct{}, end <-chan struct{}) {
	began <- struct{}{}
	<-end
}

// stay begins one.
func stay(end <-chan struct{}) {
	began := make(chan struct{})
	go stays(began, end) // owner: the test; ends when end is closed; joined by Run, or leftBehind
	<-began
}

// tests are tests that do something.
type tests func() (code int)

func (t tests) Run() int { return t() }

func TestAGoroutineThatStaysIsFound(t *testing.T) {
	before, end := goroutines(), make(chan struct{})
	stay(end)
	left := leftBehind(before, nil, 0)
	expect.Equal(t, "left", len(left), 1)
	if !strings.Contains(left[0], "leaks.stays(") {
		t.Errorf("the stack does not say what is left: %s", left[0])
	}
	expect.Equal(t, "left, but it may go on", len(leftBehind(before, []string{"github.com/cacheguard/go/internal/testing/leaks.stays"}, 0)), 0)
	expect.Equal(t, "left, but it ran before", len(leftBehind(goroutines(), nil, 0)), 0)
	close(end)
	expect.Equal(t, "left, when it may end", len(leftBehind(before, nil, time.Minute)), 0)
}

func TestFailuresAreTheFirstToBeReported(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	code := Run(tests(func() int {
		stay(end)
		return 2
	}))
	expect.Equal(t, "code", code, 2)
}

func TestWhatEndsAfterTheTestsIsNotLeft(t *testing.T) {
	end := make(chan struct{})
	code := Run(tests(func() int {
		stay(end)
		time.AfterFunc(time.Millisecond, func() { close(end) })
		return 0
	}))
	expect.Equal(t, "code", code, 0)
}
