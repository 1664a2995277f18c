package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// certificates are those of one set-up: an authority, and one certificate of it for all servers
// and clients on loopback.
type certificates struct {
	ca, cert, key string // paths of files in PEM
	client        *tls.Config
}

// newCertificates makes new ones, which are valid for a day.
func newCertificates(t testing.TB) *certificates {
	t.Helper()
	dir := t.TempDir()
	c := &certificates{
		ca: filepath.Join(dir, "ca.crt"), cert: filepath.Join(dir, "node.crt"), key: filepath.Join(dir, "node.key"),
	}
	if err := c.make(); err != nil {
		t.Fatalf("making certificates: %v", err)
	}
	return c
}

// config is how a client connects, or nil without certificates.
func (c *certificates) config() *tls.Config {
	if c == nil {
		return nil
	}
	return c.client.Clone()
}

// files are the paths of what a client needs that is not given a [tls.Config], or "" without certificates.
func (c *certificates) files() (ca, cert, key string) {
	if c == nil {
		return "", "", ""
	}
	return c.ca, c.cert, c.key
}

func (c *certificates) make() error {
	authority := template(1, "authority of the test")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return err
	}

	node := template(2, "node of the test")
	node.KeyUsage = x509.KeyUsageDigitalSignature
	// A node is the client of the others.
	node.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	node.IPAddresses, node.DNSNames = []net.IP{net.ParseIP(host)}, []string{"localhost"}
	nodeKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert, err := x509.CreateCertificate(rand.Reader, node, authority, nodeKey.Public(), authorityKey)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(nodeKey)
	if err != nil {
		return err
	}

	for _, file := range []struct {
		path, kind string
		bytes      []byte
	}{{c.ca, "CERTIFICATE", ca}, {c.cert, "CERTIFICATE", cert}, {c.key, "PRIVATE KEY", key}} {
		text := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.bytes})
		if err := os.WriteFile(file.path, text, 0o600); err != nil {
			return err
		}
	}
	return c.load()
}

// load makes the client's configuration.
func (c *certificates) load() error {
	text, err := os.ReadFile(c.ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	own, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return err
	}
	c.client = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}
	return nil
}

func template(serial int64, name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
}

// settings make a Redis or a Sentinel speak TLS on port alone, also to others.
func (c *certificates) settings(port int) redisSettings {
	return redisSettings{
		"port": "0", "tls-port": strconv.Itoa(port),
		"tls-ca-cert-file": c.ca, "tls-cert-file": c.cert, "tls-key-file": c.key,
		"tls-auth-clients": "no", "tls-replication": "yes", "tls-cluster": "yes",
	}
}
