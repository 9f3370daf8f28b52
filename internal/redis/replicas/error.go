package replicas

import (
	"errors"
	"fmt"
)

// ErrNotReplicated is what an Error matches.
var ErrNotReplicated = errors.New("not acknowledged by enough replicas")

// Error says that Redis has run a script, and that too few replicas have acknowledged what it wrote.
type Error struct{ Want, Have int }

func (e *Error) Error() string {
	return fmt.Sprintf("%v: %d of %d in time", ErrNotReplicated, e.Have, e.Want)
}

// Is reports whether the target is ErrNotReplicated.
func (e *Error) Is(target error) bool { return target == ErrNotReplicated }

// RedisError marks it as an answer of Redis': the server can be reached.
func (*Error) RedisError() {}
