package redistest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// stopped reports whether all threads of a process are stopped.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return false
	}
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		if err != nil {
			return false // the thread has ended: ask again
		}
		name := bytes.LastIndexByte(stat, ')') // which is in brackets and may have any bytes in it
		if !bytes.HasPrefix(stat[name+1:], []byte(" T")) {
			return false
		}
	}
	return len(threads) > 0
}
