package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

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
