// Package gobuild helps tests to build programs as they were built themselves. Then the go command finds nearly all packages in its
// cache; with other flags it would compile them and the standard library once more.
package gobuild

import "runtime/debug"

// Flags are those with which this program was built, as far as they make a difference to what is compiled.
func Flags() (flags []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil // no flags are slower, and not wrong
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "-race", "-gcflags", "-ldflags":
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}
