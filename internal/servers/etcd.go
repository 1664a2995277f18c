package servers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Etcd starts an etcd and returns its host:port. It has no password.
func Etcd(t testing.TB) string {
	t.Helper()
	return EtcdServer(t, nil).Addr()
}

// EtcdOptions say what differs from an etcd without users and encryption. In a cluster they apply to each node.
type EtcdOptions struct {
	// Password is the one of the user "root". If there is one, the server knows its users.
	Password string

	// TLS makes the server speak TLS only to clients, with a certificate of an authority made for the test. Between
	// themselves the nodes of a cluster do not encrypt.
	TLS bool

	// ClientCerts makes a server that speaks TLS want a certificate of its clients; [EtcdNode.TLS] has one.
	ClientCerts bool

	// Args are further arguments of the program, as in "--auto-compaction-retention=1h".
	Args []string

	// Network, if not nil, is where the nodes are, each a member of its own.
	Network *Network

	// Disk, if not nil, is where the nodes keep their data.
	Disk *Disk

	_ struct{}
}

// EtcdNode is one etcd that was started, alone or as part of a cluster. It finds its data again after [Server.Restart].
//
// Elections are fast: a node that has not heard of the leader for half a second stands for it. So the shortest lease
// that the server grants is one second.
type EtcdNode struct {
	*Server
	opts  EtcdOptions
	certs *certificates // nil without TLS
	http  *http.Client
}

// EtcdServer starts an etcd as o says; nil is the zero value.
func EtcdServer(t testing.TB, o *EtcdOptions) *EtcdNode {
	t.Helper()
	n := newEtcdNode(t, o, nil)
	spec := n.etcdSpec()
	spec.Args = func(s Site) []string { return n.args(s, "etcd", "etcd="+n.peerURL(s)) }
	n.Server = Start(t, spec)
	n.protect(t)
	return n
}

// newEtcdNode returns a node that is not started yet.
func newEtcdNode(t testing.TB, o *EtcdOptions, shared *certificates) *EtcdNode {
	t.Helper()
	n := &EtcdNode{certs: shared}
	if o != nil {
		n.opts = *o
	}
	if n.opts.TLS && n.certs == nil {
		n.certs = newCertificates(t)
	}
	n.http = &http.Client{Transport: &http.Transport{TLSClientConfig: n.TLS(), DisableKeepAlives: true}}
	return n
}

// etcdSpec is the program without its arguments. The first port is for clients, the second for the other nodes.
func (n *EtcdNode) etcdSpec() Spec {
	return Spec{
		Name:     "etcd",
		Binaries: []string{"etcd"},
		Install:  "etcd-server (Debian, Ubuntu) or etcd (Homebrew)",
		Ports:    2,
		Ready:    func(ctx context.Context, s Site) error { return n.healthy(ctx, s) },
		Disk:     n.opts.Disk,
	}
}

// args are the arguments of the node called name, which starts with the others in the list of members.
func (n *EtcdNode) args(s Site, name, members string) []string {
	client, peer := n.clientURL(s), n.peerURL(s)
	args := []string{
		"--name", name, "--data-dir", filepath.Join(s.Dir, "data"), "--logger", "zap", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", members, "--initial-cluster-state", "new", "--initial-cluster-token", members,
		"--heartbeat-interval", "50", "--election-timeout", "500",
		// Each login hashes a password, which at the usual cost takes a tenth of a second of a processor.
		"--bcrypt-cost", "4",
	}
	if n.certs != nil {
		args = append(args, "--cert-file", n.certs.cert, "--key-file", n.certs.key)
	}
	if n.certs != nil && n.opts.ClientCerts {
		args = append(args, "--client-cert-auth", "--trusted-ca-file", n.certs.ca)
	}
	return append(args, n.opts.Args...)
}

func (n *EtcdNode) clientURL(s Site) string {
	if n.certs != nil {
		return "https://" + s.addr(0)
	}
	return "http://" + s.addr(0)
}

func (n *EtcdNode) peerURL(s Site) string { return "http://" + s.addr(1) }

// healthy asks whether the node serves, which it does only with a leader.
func (n *EtcdNode) healthy(ctx context.Context, s Site) error {
	text, err := n.fetch(ctx, http.MethodGet, n.clientURL(s)+"/health", nil, "")
	if err != nil {
		return err
	}
	var health struct {
		Health string `json:"health"`
	}
	if err := json.Unmarshal(text, &health); err != nil || health.Health != "true" {
		return fmt.Errorf("its health is %.200q", text)
	}
	return nil
}

// protect makes the server know its users, if the options say so.
func (n *EtcdNode) protect(t testing.TB) {
	t.Helper()
	if n.opts.Password == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for _, step := range []struct {
		path string
		body map[string]any
	}{
		{"auth/user/add", map[string]any{"name": "root", "password": n.opts.Password}},
		{"auth/role/add", map[string]any{"name": "root"}},
		{"auth/user/grant", map[string]any{"user": "root", "role": "root"}},
		{"auth/enable", map[string]any{}},
	} {
		if _, err := n.do(ctx, step.path, step.body, ""); err != nil {
			t.Fatalf("etcd: %s: %v", step.path, err)
		}
	}
}

// TLS returns how a client connects, or nil if the server does not speak TLS.
func (n *EtcdNode) TLS() *tls.Config { return n.certs.config() }

// Files returns the paths in PEM of the authority's certificate and of a client's certificate
// and key, or "" without TLS.
func (n *EtcdNode) Files() (ca, cert, key string) { return n.certs.files() }

// Do sends one request to the server's JSON gateway, as one who may do everything, and returns the answer. The path is
// that below /v3/, as in "kv/range". Keys and values are in base64.
func (n *EtcdNode) Do(ctx context.Context, path string, body map[string]any) (map[string]any, error) {
	if n.opts.Password == "" || path == "auth/authenticate" {
		return n.do(ctx, path, body, "")
	}
	in, err := n.do(ctx, "auth/authenticate", map[string]any{"name": "root", "password": n.opts.Password}, "")
	if err != nil {
		return nil, err
	}
	token, _ := in["token"].(string)
	return n.do(ctx, path, body, token)
}

func (n *EtcdNode) do(ctx context.Context, path string, body map[string]any, token string) (map[string]any, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	reply, err := n.fetch(ctx, http.MethodPost, n.clientURL(n.Site)+"/v3/"+path, text, token)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{}
	if err := json.Unmarshal(reply, &answer); err != nil {
		return nil, fmt.Errorf("the answer %.200q cannot be read: %w", reply, err)
	}
	if said, _ := answer["error"].(string); said != "" {
		return nil, errors.New(said)
	}
	return answer, nil
}

// Metric returns the sum of a metric of the server over all its labels.
func (n *EtcdNode) Metric(ctx context.Context, name string) (float64, error) {
	text, err := n.fetch(ctx, http.MethodGet, n.clientURL(n.Site)+"/metrics", nil, "")
	if err != nil {
		return 0, err
	}
	var sum float64
	for line := range strings.Lines(string(text)) {
		rest, found := strings.CutPrefix(line, name)
		if !found || !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "{") {
			continue
		}
		var value float64
		if _, err := fmt.Sscan(rest[strings.LastIndexByte(strings.TrimSpace(rest), ' ')+1:], &value); err == nil {
			sum += value
		}
	}
	return sum, nil
}

// fetch makes one HTTP request on a connection of its own.
func (n *EtcdNode) fetch(ctx context.Context, method, url string, body []byte, token string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", token)
	}
	response, err := n.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
