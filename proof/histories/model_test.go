package histories

import (
	"fmt"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/cacheguard/go/internal/testing/redistest"
)

// action is what a process did: it took a lock, with a fence, or gave it up, perhaps by crashing.
type action struct {
	name   string
	read   bool
	giveUp bool

	permits int // how many may share it, of a semaphore; else 0: any number
}

// state is a lock that never fails.
type state struct {
	writer  bool
	readers int
	fence   int64
}

// perfect is what a history has to look like: at some moment between the call and the return of each action it
// happened, nobody wrote beside anybody, and fences grew.
var perfect = porcupine.Model{
	Init: func() any { return state{} },
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byName := make(map[string][]porcupine.Operation)
		for _, op := range history {
			name := op.Input.(action).name
			byName[name] = append(byName[name], op)
		}
		for _, part := range byName {
			parts = append(parts, part)
		}
		return parts
	},
	Step: func(before, input, output any) (bool, any) {
		s, did, fence := before.(state), input.(action), output.(int64)
		switch {
		case did.giveUp && did.read:
			s.readers--
			return true, s
		case did.giveUp:
			s.writer = false
			return true, s
		case s.writer, !did.read && s.readers > 0, did.permits > 0 && s.readers >= did.permits:
			return false, s
		case did.read:
			s.readers++
		default:
			s.writer = true
			fence-- // it has to be larger, not as large
		}
		ok := fence >= s.fence
		s.fence = output.(int64)
		return ok, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v %v", input, output) },
}

var shared *redistest.Server

func TestMain(m *testing.M) { redistest.Main(m, &shared) }
