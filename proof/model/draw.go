package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cacheguard/go/internal/testing/replay"
)

// Drawing is a kind of run that is drawn to be replayed: of which model, within which bounds, and where the tests are
// that replay it.
type Drawing struct {
	Name, Model, Folder string
	Defines             []string
}

const here = "proof/model"

// Drawn are the kinds of runs that are replayed.
var Drawn = []Drawing{
	{"load", "load", here, []string{"-DCOPIES=2", "-DLOSSES=3"}},
	{"guard", "load", here, []string{"-DINSTANCES=3", "-DGETS=1", "-DFEW=1", "-DTIMERS=0", "-DCOPIES=0", "-DLOSSES=0"}},
	{"update", "update", here, []string{"-DLOADS=2", "-DCRASHES=1", "-DLOSSES=2", "-DCOPIES=2"}},
	{"put", "update", here, []string{"-DPUTS=1", "-DFENCED=1", "-DINVALIDATIONS=1", "-DCRASHES=1", "-DLOSSES=1", "-DCOPIES=2"}},
	{"locked", "update", here, []string{"-DLOADS=2", "-DINVALIDATIONS=1", "-DCRASHES=1", "-DLOSSES=1"}},
	{"lockedput", "update", here, []string{"-DPUTS=1", "-DFENCED=1", "-DINVALIDATIONS=1", "-DCRASHES=1", "-DLOSSES=1"}},
	{"epochs", "epochs", here, []string{"-DLOADS=4", "-DLOSSES=1", "-DCOPIES=1"}},
	{"everything", "epochs", here, []string{"-DLOADS=4", "-DALL=1", "-DLOSSES=1", "-DCOPIES=1"}},
	{"intend", "intend", here, []string{"-DTRANSACTIONS=2", "-DLOADS=3", "-DCOPIES=2", "-DLOSSES=1"}},
	{"forgotten", "intend", here, []string{"-DLOADS=3", "-DLOSSES=1"}},
	{"tier", "tier", here, []string{"-DREADS=6", "-DWRITES=5", "-DLOST=2"}},
	{"cut", "tier", here, []string{"-DREADS=6", "-DWRITES=5", "-DCUTS=2"}},
	{"mutex", "mutex", "mutex", []string{"-DCALLERS=4", "-DLEAVES=1", "-DPAUSES=2", "-DDEATHS=1", "-DCOPIES=2"}},
	{"plain", "mutex", "mutex", []string{"-DCALLERS=3", "-DLEAVES=1", "-DPAUSES=1"}},
	{"plain", "rwlock", "rwlock", []string{"-DPAUSES=1"}},
	{"rwlock", "rwlock", "rwlock", []string{"-DWRITERS=2", "-DREADERS=3", "-DLEAVES=1", "-DPAUSES=2", "-DDEATHS=1", "-DCOPIES=2"}},
	{"change", "rwlock", "rwlock", []string{"-DWRITERS=2", "-DREADERS=2", "-DCHANGES=1", "-DCOPIES=2"}},
	{"semaphore", "semaphore", "semaphore", []string{"-DCALLERS=4", "-DFEWER=1", "-DLEAVES=1", "-DPAUSES=2", "-DDEATHS=1", "-DCOPIES=2"}},
}

// DrawAll draws so many runs of each kind, or of those of that name, and writes them into an archive in the testdata of
// their tests.
func (s *Searcher) DrawAll(ctx context.Context, root, name string, runs int) error {
	for _, d := range Drawn {
		if name != "" && name != d.Name {
			continue
		}
		var archive bytes.Buffer
		for seed := range runs {
			trail, err := s.Draw(ctx, Model{Name: d.Model}, d.Defines, seed)
			if err != nil {
				return err
			}
			fmt.Fprintf(&archive, "-- %s-%02d --\n%s", d.Name, seed, replay.Write(trail))
		}
		file := filepath.Join(root, d.Folder, replay.Archive(d.Name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, archive.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Draw draws a run at random.
func (s *Searcher) Draw(ctx context.Context, m Model, defines []string, seed int) (trail []replay.Step, err error) {
	dir, err := s.unpack(m.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	said, err := run(ctx, dir, "spin", append([]string{"-T", "-u5000", fmt.Sprintf("-n%d", seed)}, append(defines, m.Name+".pml")...)...)
	return replay.Read(said), err
}
