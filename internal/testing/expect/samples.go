package expect

import "os"

// Samples returns how many samples a test takes of what is too much to try whole: few, or many if THOROUGH is set, as in .ci/run.
func Samples(few, many int) int {
	if os.Getenv("THOROUGH") != "" {
		return many
	}
	return few
}
