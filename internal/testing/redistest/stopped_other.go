//go:build !linux

package redistest

import (
	"bytes"
	"os/exec"
	"strconv"
)

// stopped reports whether a process is stopped.
func stopped(pid int) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && bytes.HasPrefix(bytes.TrimSpace(state), []byte("T"))
}
