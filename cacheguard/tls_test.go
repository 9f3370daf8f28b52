package cacheguard

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// dialTLS is a client of a Redis whose certificate was signed by the authority in caFile.
func dialTLS(addr, user, password, caFile string) (*redis.Client, error) {
	ca, err := os.ReadFile(caFile) // of a managed Redis; without RootCAs, those of the system count
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("no certificate in " + caFile)
	}
	return redis.NewClient(&redis.Options{
		Addr: addr, Username: user, Password: password,
		TLSConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, // ServerName: that of Addr
		DialerRetries: 1,
	}), nil
}

func TestAGuardWorksOverTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	port := redistest.FreePort(t)
	server := redistest.Start(t, "--tls-port", strconv.Itoa(port), "--tls-auth-clients", "no",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	expect.ErrorIs(t, server.Client(t).Do(t.Context(), "acl", "setuser", "service", "on", ">secret", "~*", "&*", "+@all").Err(), nil)
	rdb, err := dialTLS(fmt.Sprint("127.0.0.1:", port), "service", "secret", cert)
	expect.ErrorIs(t, err, nil)
	t.Cleanup(func() { _ = rdb.Close() })
	g := newGuard(t, rdb, Config{Prefix: "shop", Local: LocalConfig{MaxEntries: 10}})
	expect.ErrorIs(t, g.SelfCheck(redistest.Patiently(t)), nil)
	value, err := Get(t.Context(), g, "k", func(context.Context) (string, error) { return "v", nil })
	expect.ErrorIs(t, err, nil)
	expect.Equal(t, "value", value, "v")
}

// certificate writes one for 127.0.0.1 that has signed itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	expect.ErrorIs(t, err, nil)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	expect.ErrorIs(t, err, nil)
	raw, err := x509.MarshalPKCS8PrivateKey(secret)
	expect.ErrorIs(t, err, nil)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		expect.ErrorIs(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600), nil)
	}
	return cert, key
}
