package wallclock

import (
	"encoding/binary"
	"slices"
)

// replacements are functions that ask the kernel, and add so many seconds to the real time, and to the monotonic clock. The kernel keeps all
// registers but rax, rcx and r11, which a function may change.
func replacements(ahead, mono int64) map[string][]byte {
	rcx := func(seconds int64) []byte { // mov rcx, seconds
		return binary.LittleEndian.AppendUint64([]byte{0x48, 0xb9}, uint64(seconds))
	}
	load := rcx(ahead)
	return map[string][]byte{
		"__vdso_clock_gettime": slices.Concat(
			[]byte{0xb8, 228, 0, 0, 0, 0x0f, 0x05}, // mov eax, SYS_clock_gettime; syscall
			[]byte{0x85, 0xff, 0x74, 0x16},         // test edi, edi; jz real: it is CLOCK_REALTIME
			[]byte{0x83, 0xff, 5, 0x74, 0x11},      // cmp edi, CLOCK_REALTIME_COARSE; jz real
			[]byte{0x83, 0xff, 1, 0x75, 0x19},      // cmp edi, CLOCK_MONOTONIC; jne end
			rcx(mono), []byte{0xeb, 0x0a},          // jmp add
			load,                     // real:
			[]byte{0x48, 0x01, 0x0e}, // add: add [rsi], rcx
			[]byte{0xc3},             // end: ret
		),
		"__vdso_gettimeofday": slices.Concat(
			[]byte{0xb8, 96, 0, 0, 0, 0x0f, 0x05}, // mov eax, SYS_gettimeofday; syscall
			[]byte{0x48, 0x85, 0xff, 0x74, 0x0d},  // test rdi, rdi; jz end: only the time zone is asked for
			load, []byte{0x48, 0x01, 0x0f},        // add [rdi], rcx
			[]byte{0xc3}, // end: ret
		),
		"__vdso_time": slices.Concat(
			[]byte{0xb8, 201, 0, 0, 0, 0x0f, 0x05}, // mov eax, SYS_time; syscall
			load, []byte{0x48, 0x01, 0xc8},         // add rax, rcx
			[]byte{0x48, 0x85, 0xff, 0x74, 0x03},   // test rdi, rdi; jz end
			[]byte{0x48, 0x89, 0x07}, []byte{0xc3}, // mov [rdi], rax; end: ret
		),
	}
}
