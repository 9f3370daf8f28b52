package cacheguard

import (
	"errors"
	"fmt"

	"github.com/cacheguard/go/internal/protocol"
)

// maxVersion bounds CacheConfig.Version: it is a count, and a larger number is probably a date or a hash.
const maxVersion = 1_000_000

// seat is where the values of one version of a program are. The zero seat is for values without a version. There are four others
// (see protocol.Seat), so an entry in a seat may be of a version that is a multiple of four away.
type seat struct {
	version int
	suffix  string // of the keys of values
}

func newSeat(version int) seat {
	if version == 0 {
		return seat{}
	}
	return seat{version: version, suffix: protocol.Seat(version)}
}

// errOfNoKind and errOfAKind say that an entry belongs to somebody else, who has the same key.
var (
	errOfNoKind = errors.New("it was stored by a call that names no Cache")
	errOfAKind  = errors.New("it belongs to a Cache")
)

// check returns why an entry that was found is not one of the policy's; nil if it is.
func (p *policy) check(e *protocol.Entry) error {
	switch {
	case p.kind == nil && !e.Stamp.Kind.IsZero():
		return errOfAKind
	case p.kind != nil && e.Stamp.Kind.IsZero():
		return errOfNoKind
	case p.seat.version != 0 && e.Version != p.seat.version: // without one: nobody else has these keys
		return fmt.Errorf("it was stored under version %d of CacheConfig, and this is %d", e.Version, p.seat.version)
	}
	return nil
}
