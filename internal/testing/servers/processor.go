package servers

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Processor is how much time of processors its processes have used, also ended ones; 0 elsewhere than on Linux.
func (d *daemon) Processor() time.Duration { return processorOf(d.Pid()) }

// processorOf adds up a process and its children.
func processorOf(pid int) (used time.Duration) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // it has ended, and its parent has its time
	}
	const ticks = 100 // a second, on all Linux
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	for _, i := range []int{11, 12, 13, 14} { // its own, and of children that have ended: in user mode and in the kernel
		if i < len(fields) {
			n, _ := strconv.Atoi(fields[i]) // it is a number
			used += time.Duration(n) * time.Second / ticks
		}
	}
	for _, child := range children(pid) {
		used += processorOf(child)
	}
	return used
}
