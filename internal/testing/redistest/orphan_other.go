//go:build !linux

package redistest

import (
	"os/exec"
	"strconv"
	"syscall"
)

func dieWithParent(*exec.Cmd) {}

// guard starts a shell that waits on a pipe whose other end only this process has: when this process is gone, the
// shell reads the end of the pipe and kills pid. It has a process group of its own, so that ^C does not reach it.
func guard(pid int) (release func(), err error) {
	sh := exec.Command("/bin/sh", "-c", `read _; kill -9 "$0"`, strconv.Itoa(pid))
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := sh.StdinPipe()
	if err != nil {
		return func() {}, err
	}
	if err := sh.Start(); err != nil {
		return func() {}, err
	}
	return func() {
		_ = sh.Process.Kill() // before the pipe closes: pid may be another process by now
		_ = sh.Wait()         // closes the pipe; that the shell was killed is no news
		_ = pipe.Close()      // closed already when Wait could
	}, nil
}
