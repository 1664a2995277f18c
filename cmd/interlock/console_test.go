package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/cmd/interlock/internal/webpage"
	"github.com/rogpeppe/go-internal/testscript"
)

var consoleLine = regexp.MustCompile(`^(?:console|states|locks): (https?://\S+/) \(Ctrl-C ends it\)\n$`)

// pageOf waits until the console that a script has started as NAME says where it is.
func pageOf(ts *testscript.TestScript, name string) string {
	waitUntil(ts, "the address of "+name, func() bool { return consoleLine.MatchString(ts.ReadFile(name + ".out")) })
	return consoleLine.FindStringSubmatch(ts.ReadFile(name + ".out"))[1]
}

// address puts host and port of a console into a variable of the script.
func address(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: address NAME VARIABLE")
	}
	_, rest, _ := strings.Cut(pageOf(ts, args[0]), "://")
	ts.Setenv(args[1], strings.TrimSuffix(rest, "/"))
}

// ask sends a request to a console until the answer has the status and the text.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 || len(args) > 6 {
		ts.Fatalf("usage: ask NAME PATH STATUS TEXT [BODY [TOKEN]]")
	}
	page := pageOf(ts, args[0])
	var last string
	defer func() { ts.Logf("[last answer]\n%s", last) }()
	waitUntil(ts, args[3]+" from "+args[1], func() bool {
		r, err := http.NewRequest(http.MethodGet, page+strings.TrimPrefix(args[1], "/"), http.NoBody)
		ts.Check(err)
		if len(args) > 4 && args[4] != "" {
			body := args[4]
			if file, ok := strings.CutPrefix(body, "@"); ok {
				body = ts.ReadFile(file)
			}
			r.Method, r.Body = http.MethodPost, io.NopCloser(strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
		}
		if len(args) > 5 {
			r.Header.Set("Authorization", "Bearer "+args[5])
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		ts.Check(err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		ts.Check(err)
		last = strconv.Itoa(resp.StatusCode) + " " + string(body)
		return strconv.Itoa(resp.StatusCode) == args[2] && strings.Contains(string(body), args[3])
	})
}

// served is a console that runs in this process.
type served struct {
	*testing.T
	page  string
	stop  context.CancelFunc
	ended chan int
	err   string // where its stderr goes
}

// serveConsole starts the console and waits until it says where it is.
func serveConsole(t *testing.T, args ...string) *served {
	t.Helper()
	return serveCommand(t, append([]string{"console", "--url", "mem://"}, args...)...)
}

// serveCommand starts a command that serves, and waits until it says where.
func serveCommand(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &served{T: t, stop: stop, ended: make(chan int, 1), err: filepath.Join(t.TempDir(), "stderr")}
	stdout, said := io.Pipe()
	stderr, err := os.Create(s.err)
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with ctx
		defer stderr.Close()
		code := run(ctx, args, strings.NewReader(""), said, stderr, func(string) string { return "" })
		_ = said.Close()
		s.ended <- code
	}()
	t.Cleanup(stop)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	found := consoleLine.FindStringSubmatch(line)
	if found == nil {
		text, _ := os.ReadFile(s.err)
		t.Fatalf("it says %q, %v, %s", line, err, text)
	}
	s.page = found[1]
	return s
}

func TestConsole_ThatIsStopped_EndsStreamsAtOnce(t *testing.T) {
	t.Parallel()
	s := serveConsole(t, "--listen", "127.0.0.1:0")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.page+"api/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := new(http.Transport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.stop()
	if code := <-s.ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took >= webpage.ClosingTime {
		t.Errorf("it took %v", took)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the stream broke: %v", err)
	}
}

// writeCertificate makes a certificate for this machine, and returns it and the names of its files.
func writeCertificate(t *testing.T) (roots *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{
		certFile: certText, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certText)
	return roots, certFile, keyFile
}

func TestConsole_ServesTLS(t *testing.T) {
	t.Parallel()
	roots, certFile, keyFile := writeCertificate(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ann:0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveConsole(t, "--listen", "127.0.0.1:0", "--tls-cert", certFile, "--tls-key", keyFile,
		"--token-file", tokens)
	if !strings.HasPrefix(s.page, "https://") {
		t.Fatal(s.page)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for token, want := range map[string]int{"0123456789abcdef": http.StatusOK, "": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.page+"api/board", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("token %q: %s", token, resp.Status)
		}
	}
}

func TestConsole_OnAllAddresses_WarnsOfTokensInTheClear(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ann:0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveConsole(t, "--listen", "0.0.0.0:0", "--token-file", tokens)
	if !strings.HasPrefix(s.page, "http://localhost:") {
		t.Error(s.page)
	}
	s.stop()
	<-s.ended
	if text, _ := os.ReadFile(s.err); !strings.Contains(string(text), "tokens travel in the clear") {
		t.Errorf("%s", text)
	}
}
