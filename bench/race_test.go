//go:build race

package bench

const raced = true // the detector allocates, too
