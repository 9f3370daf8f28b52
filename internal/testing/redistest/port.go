package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports come from below the ranges the kernel gives to outgoing connections, on Linux and macOS: from one of those, a
// client's connection could take the port of a killed server before it is restarted.
const (
	firstPort = 11_000
	lastPort  = 21_000
	busOffset = 10_000 // a cluster node also listens at its port plus this
)

// ports are tried in an order of this process's own, and each once before any comes again: who is given several does not listen to them yet.
var (
	ports = rand.Perm(lastPort - firstPort)
	tried atomic.Int64
)

// freePort finds a port that is free now, as is its cluster bus port. Another process may take it before the server
// does.
func freePort() (int, error) {
	var err error
	for range 100 {
		port := firstPort + ports[int(tried.Add(1))%len(ports)]
		if err = errors.Join(listenOnce(port), listenOnce(port+busOffset)); err == nil {
			return port, nil
		}
	}
	return 0, err
}

func listenOnce(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}
