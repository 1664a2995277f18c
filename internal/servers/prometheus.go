package servers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// PrometheusOptions say what a Prometheus does.
type PrometheusOptions struct {
	// Config is its prometheus.yml. Paths in it are relative to the folder of Files. The default scrapes nothing.
	Config string

	// Files are further files by name, such as those that rule_files lists.
	Files map[string]string

	// Args are further arguments of the program, as in "--query.lookback-delta=5s".
	Args []string

	_ struct{}
}

// PrometheusServer starts a Prometheus as o says; nil is the zero value. It finds its data again after
// [Server.Restart]. Its pages and its API are below http:// and [Server.Addr].
func PrometheusServer(t testing.TB, o *PrometheusOptions) *Server {
	t.Helper()
	if o == nil {
		o = &PrometheusOptions{}
	}
	return Start(t, Spec{
		Name:     "prometheus",
		Binaries: []string{"prometheus"},
		Install:  "prometheus (Debian, Ubuntu, Homebrew)",
		Prepare:  func(_ context.Context, s Site) error { return o.write(s.Dir) },
		Args:     o.args,
		Ready:    prometheusReady,
	})
}

const prometheusConf = "prometheus.yml"

// write fills the server's folder.
func (o *PrometheusOptions) write(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, prometheusConf), []byte(o.Config), 0o600); err != nil {
		return err
	}
	for name, text := range o.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (o *PrometheusOptions) args(s Site) []string {
	return append([]string{
		"--config.file=" + filepath.Join(s.Dir, prometheusConf), "--storage.tsdb.path=" + filepath.Join(s.Dir, "data"),
		"--web.listen-address=" + s.addr(0), "--log.level=warn",
	}, o.Args...)
}

// prometheusReady asks whether the server serves, which it does when it has read its configuration and its data.
func prometheusReady(ctx context.Context, s Site) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr(0)+"/-/ready", nil)
	if err != nil {
		return err
	}
	// No connection is kept: what restarts a server would find the old one's.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 200)) // what is missing of it is not told
		return fmt.Errorf("it answers %s: %s", response.Status, said)
	}
	return nil
}
