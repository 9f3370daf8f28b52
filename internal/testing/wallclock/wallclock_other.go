//go:build !linux || !amd64

package wallclock

import "errors"

// set has no way to do it here.
func set(pid int, o Offset) error { return errors.ErrUnsupported }
