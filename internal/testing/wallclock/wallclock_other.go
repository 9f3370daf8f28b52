//go:build !linux || !amd64

package wallclock

import (
	"errors"
	"time"
)

// set has no way to do it here.
func set(pid int, ahead time.Duration) error { return errors.ErrUnsupported }
