package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
	"github.com/cacheguard/go/mutex"
)

// everyCommand runs each command on a Redis that rdb is a client of.
func everyCommand(t *testing.T, env []string, url string, rdb cacheguard.Redis) {
	t.Helper()
	g := newGuard(t, rdb, "shop")
	locks, err := mutex.New(rdb, mutex.Config{RedisTimeout: redistest.Patience, Prefix: "jobs", Instance: "shop-1"})
	expect.ErrorIs(t, err)
	t.Cleanup(func() { _ = locks.Close() }) // always nil
	run := func(want string, args ...string) {
		t.Helper()
		ctlIn(t, env, url, slices.Concat([]string{"--prefix", "shop", "--lock-prefix", "jobs"}, args)...).want(t, done, want)
	}
	run("each command, script and channel of a Guard works", "check", "--no-locks")
	keep(t, g, "a")
	run(`"a": fresh`, "inspect", "a")
	run("invalidated  a", "invalidate", "a")
	gone(t, g, "a")
	run("1m0s", "bypass", "--yes", "1m")
	run("the cache is on", "bypass", "0s")
	lease, err := locks.Lock(t.Context(), "import")
	expect.ErrorIs(t, err)
	run("shop-1", "locks", "show", "import")
	run("1 holders", "locks", "revoke", "--yes", "import")
	<-lease.Context().Done()
	run("listeners", "stats")

	cmd := command(t.Context(), url, "--prefix", "shop", "watch", "--count", "1")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.StdoutPipe()
	expect.ErrorIs(t, err)
	expect.ErrorIs(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for _, want := range []string{"subscribed", "invalidated  b"} {
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Errorf("%q, want %q", lines.Text(), want)
		}
		if want == "subscribed" {
			expect.ErrorIs(t, g.Invalidate(t.Context(), "b"))
		}
	}
	expect.ErrorIs(t, cmd.Wait())
}

func TestEveryCommandWorksOverTLS(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addr, ca := serveTLS(t, s.Addr())
	everyCommand(t, []string{"SSL_CERT_FILE=" + ca}, "rediss://"+addr, s.Client(t))
	r := ctl(t, "rediss://user:hidden@"+addr, "check")
	r.want(t, unreachable, "certificate")
	if strings.Contains(r.out+r.errors, "hidden") {
		t.Error("the password is printed")
	}
}

func TestEveryCommandWorksBySentinel(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t)
	everyCommand(t, nil, "redis+sentinel://"+s.Addrs()[0]+"/"+s.Name(), s.FailoverClient(t))
}

func TestEveryCommandWorksOnACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 0)
	everyCommand(t, nil, "redis://"+strings.Join(c.Addrs()[1:], ","), c.Client(t))
}

// serveTLS passes what comes over TLS on to the address. It returns its own address, and the file with the certificate that vouches for it.
func serveTLS(t *testing.T, to string) (addr, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.ErrorIs(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	expect.ErrorIs(t, err)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	expect.ErrorIs(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	})
	expect.ErrorIs(t, err)
	var all sync.WaitGroup
	all.Go(func() { // owner: the test; stop: the listener's Close; joined below
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { pass(conn, to) }) // owner: the test; stop: the client's end; joined below
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // nobody comes any more
		all.Wait()
	})
	return listener.Addr().String(), ca
}

// pass passes on what comes, until either side ends.
func pass(from net.Conn, to string) {
	defer from.Close()
	there, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer there.Close()
	ended := make(chan struct{})
	go func() { // owner: pass; stop: the end of either connection; joined below
		defer close(ended)
		_, _ = io.Copy(from, there) // that it ends is all that counts
		_ = from.Close()            // as above
	}()
	_, _ = io.Copy(there, from) // as above
	_ = there.Close()           // as above
	<-ended
}
