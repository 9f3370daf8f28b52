package cacheguard

import (
	"fmt"
	"strconv"

	"github.com/cacheguard/go/internal/protocol"
)

// maxVersion bounds CacheConfig.Version: it is a count, and a larger number is probably a date or a hash.
const maxVersion = 1_000_000

// versionStamp names the stamp of an entry that has the version of the program. Unlike those of the other names, it is never invalidated.
const versionStamp = 'v'

// seat is where the values of one version of a program are. The zero seat is for values without a version. There are four others
// (see protocol.Seat), so an entry in a seat may be of a version that is a multiple of four away.
type seat struct {
	version int
	text    string // the version, as a stamp has it
	suffix  string // of the keys of values
}

func newSeat(version int) seat {
	if version == 0 {
		return seat{}
	}
	return seat{version: version, text: strconv.Itoa(version), suffix: protocol.Seat(version)}
}

// stamp adds the version to stamps of an entry. It comes first.
func (s *seat) stamp(stamps protocol.Stamps) protocol.Stamps {
	if s.version == 0 {
		return stamps
	}
	return stamps.Append(string(versionStamp), s.text)
}

// check returns why an entry that was found in the seat is not of its version; nil if it is.
func (s *seat) check(e *protocol.Entry) error {
	if s.version == 0 {
		return nil // nobody else has these keys
	}
	name, version, _ := e.Stamps.Next()
	if string(name) == string(versionStamp) && string(version) == s.text {
		return nil
	}
	return fmt.Errorf("it was stored under version %q of CacheConfig, and this is %s", version, s.text)
}

// versionOf is the version that an entry was stored under; 0: none.
func versionOf(stamps protocol.Stamps) int {
	name, text, _ := stamps.Next()
	if len(name) == 0 || name[0] != versionStamp {
		return 0
	}
	version, _ := strconv.Atoi(string(text)) // 0: nobody stores another one
	return version
}
