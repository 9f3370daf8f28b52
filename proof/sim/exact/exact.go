// Package exact runs a seed of the simulated fleet (package sim) so that nothing but the seed decides what happens: whoever runs it again
// sees every message again, at its time and with its bytes.
//
// Natively, the Go runtime decides, too: it seeds math/rand/v2, crypto/rand, the order of maps and the choices of select anew in each process, lets two processors
// race, and interrupts goroutines by the real clock. So the fleet is compiled for WebAssembly (GOOS=wasip1), where Go has one thread and no clock of its own. The
// host, wazero, gives it a clock that only moves when it is read, and all random numbers; these come from the seed. Nothing in the library knows of it.
package exact

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

const guest = "github.com/cacheguard/go/proof/sim/exact/guest"

// Fleet is the program. It is safe for concurrent use.
type Fleet struct {
	runtime wazero.Runtime
	program wazero.CompiledModule
}

// Compile compiles the fleet, which takes a minute the first time, and some seconds if the go command has it already.
func Compile(ctx context.Context) (*Fleet, error) {
	dir, err := os.MkdirTemp("", "exact")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of temporary files
	file := filepath.Join(dir, "guest.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", file, guest)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=") // what the tests are compiled with, such as -race, is not for this
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f := &Fleet{runtime: wazero.NewRuntime(ctx)}
	if _, err = wasi_snapshot_preview1.Instantiate(ctx, f.runtime); err == nil {
		f.program, err = f.runtime.CompileModule(ctx, binary)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(ctx))
	}
	return f, nil
}

// Run runs a seed, in a process of its own as it were, and returns what it prints. wrong: it broke a promise, or did not end.
func (f *Fleet) Run(ctx context.Context, seed uint64) (printed string, wrong bool, err error) {
	return f.run(ctx, seed, strconv.FormatUint(seed, 10))
}

func (f *Fleet) run(ctx context.Context, seed uint64, arg string) (printed string, wrong bool, err error) {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	var out bytes.Buffer
	_, err = f.runtime.InstantiateModule(ctx, f.program, wazero.NewModuleConfig().WithName("").
		WithArgs("guest", arg).WithStdout(&out).WithStderr(&out).WithRandSource(rand.NewChaCha8(key)))
	if exit := (*sys.ExitError)(nil); errors.As(err, &exit) {
		wrong, err = exit.ExitCode() != 0, nil
	}
	return out.String(), wrong, err
}

// Close frees what the Fleet takes. Nothing runs any more.
func (f *Fleet) Close(ctx context.Context) error { return f.runtime.Close(ctx) }
