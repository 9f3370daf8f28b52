// Command guest runs one seed of the simulated fleet, and prints what happened: what package exact builds for WebAssembly.
package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/cacheguard/go/proof/sim"
)

func main() {
	seed, err := strconv.ParseUint(os.Args[1], 10, 64)
	if err != nil {
		panic(err)
	}
	os.Args = os.Args[:1]
	logging.Disable()                                                                              // of go-redis, which reports every connection that is lost
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{ // synctest wants a test
		Name: "seed", F: func(t *testing.T) {
			r := sim.Run(t, seed)
			fmt.Print(r.Journal)
			for _, wrong := range r.Wrong {
				t.Error(wrong)
			}
		},
	}}, nil, nil)
}
