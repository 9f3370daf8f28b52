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

// ports are tried in an order of this process's own.
var (
	ports = rand.Perm(lastPort - firstPort)
	tried atomic.Int64
)

// takePort finds a port that is free, as is its cluster bus port, and keeps it from other tests, of any process, until it is released:
// also while nobody listens to it, or else clients of a killed server, or of a proxy that refuses them, would reach the server of another
// test. The UDP port of that number stands for it.
func takePort() (port int, release func() error, err error) {
	for range 100 {
		port = firstPort + ports[int(tried.Add(1))%len(ports)]
		var held net.PacketConn
		if held, err = net.ListenPacket("udp", local(port)); err != nil {
			continue
		}
		if err = errors.Join(listenOnce(port), listenOnce(port+busOffset)); err == nil {
			return port, held.Close, nil
		}
		_ = held.Close() // the next one is tried
	}
	return 0, nil, err
}

func listenOnce(port int) error {
	l, err := net.Listen("tcp", local(port))
	if err != nil {
		return err
	}
	return l.Close()
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
