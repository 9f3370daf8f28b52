package redistest

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
)

// lines reads a stream to its end, so that the writer never has to wait, and keeps its lines.
type lines struct {
	from io.ReadCloser
	done chan struct{} // closed at the end of the stream
	more chan struct{} // has an element when there may be more to read

	mu   sync.Mutex
	kept []string
	read int // of kept, by next
}

func readLines(from io.ReadCloser) *lines {
	l := &lines{from: from, done: make(chan struct{}), more: make(chan struct{}, 1)}
	go l.run() // owner: lines; stops at the end of the stream or at close, which waits for it
	return l
}

func (l *lines) run() {
	defer close(l.done)
	for in := bufio.NewReader(l.from); ; {
		line, err := in.ReadString('\n')
		if line != "" {
			l.keep(strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

func (l *lines) keep(line string) {
	l.mu.Lock()
	l.kept = append(l.kept, line)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// next waits for a line. One goroutine may call it at a time.
func (l *lines) next(ctx context.Context) (string, error) {
	for {
		ended := closed(l.done) // asked first: no line comes after the end
		if line, ok := l.unread(); ok {
			return line, nil
		}
		if ended {
			return "", io.EOF
		}
		select {
		case <-l.more:
		case <-l.done:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (l *lines) unread() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read == len(l.kept) {
		return "", false
	}
	l.read++
	return l.kept[l.read-1], true
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(append(l.kept, ""), "\n")
}

func (l *lines) close() {
	_ = l.from.Close() // only read from
	<-l.done
}
