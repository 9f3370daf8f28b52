// Command scale compares the model of bench/SCALE.md with the measurements of compare:
//
//	go run ./bench/cmd/compare -scale -rounds 3 -out bench/results/scale
//	go run ./bench/cmd/scale bench/results/scale/compare.json
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cacheguard/go/bench/internal/report"
)

func main() {
	if err := scale(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func scale(args []string, w io.Writer) error {
	if len(args) != 1 {
		return errors.New("which compare.json?")
	}
	r, err := report.Read(args[0])
	if err != nil {
		return err
	}
	return r.Checked(w)
}
