package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
)

// Info returns a section of INFO. It is asked over one connection that the server keeps for this, named "redistest" in
// CLIENT LIST.
func (s *Server) Info(section string) map[string]string {
	info, err := s.node.current().info(context.Background(), section)
	s.must(err)
	return info
}

// Commands is how often the server has run each command, by its lower-case name, also inside scripts. A
// subcommand is named as in "client|setinfo". INFO is left out, so that asking changes nothing.
func (s *Server) Commands() map[string]int64 {
	stats, err := s.node.current().info(context.Background(), "commandstats")
	s.must(err)
	calls := make(map[string]int64, len(stats))
	for name, stat := range stats {
		name, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok || name == "info" {
			continue
		}
		n, _, _ := strings.Cut(strings.TrimPrefix(stat, "calls="), ",")
		calls[name], err = strconv.ParseInt(n, 10, 64)
		s.must(err)
	}
	return calls
}

// Reads is how often the server has read from a client, its own Info and Commands not counted: for unpipelined
// commands, the number of round trips.
func (s *Server) Reads() int64 {
	run := s.node.current()
	stats, err := run.info(context.Background(), "stats")
	s.must(err)
	reads, err := strconv.ParseInt(stats["total_reads_processed"], 10, 64)
	s.must(err)
	return reads - run.looks.Load()
}

// FewestReads is the fewest Reads of five runs of f, which says what f needs: on a machine that stands still for a moment, a caller may send
// a request again, and what a client does by the clock comes on top. Beyond five, f runs until that is wanted, at most a hundred times.
func (s *Server) FewestReads(wanted int64, f func()) int64 {
	fewest := int64(math.MaxInt64)
	for run := 0; run < 5 || run < 100 && fewest > wanted; run++ {
		before := s.Reads()
		f()
		fewest = min(fewest, s.Reads()-before)
	}
	return fewest
}

func (r *run) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := r.control.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("redistest: INFO %s: %w", section, err)
	}
	r.looks.Add(1)
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

// traceVariable asks for a trace: with REDISTEST_TRACE=1 every server prints the commands that it runs, those inside scripts
// included.
const traceVariable = "REDISTEST_TRACE"

// trace prints the MONITOR of one run of a server.
type trace struct {
	conn   net.Conn
	copied sync.WaitGroup
}

// startTrace traces the server at addr to w, if the environment asks for it; else it returns nil.
func startTrace(addr string, w io.Writer) (*trace, error) {
	if os.Getenv(traceVariable) == "" {
		return nil, nil
	}
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "MONITOR\r\n"); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // +OK: from here on, nothing is missed
	t := &trace{conn: conn}
	t.copied.Go(func() { // owner: the run of the server; stop: close, or the end of the server; joined by close
		for lines.Scan() {
			_, _ = fmt.Fprintln(w, addr, lines.Text()) // a trace that cannot be printed is nobody's failure
		}
	})
	return t, nil
}

func (t *trace) close() {
	if t == nil {
		return
	}
	_ = t.conn.Close() // it was only read from
	t.copied.Wait()
}
