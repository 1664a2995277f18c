package servers_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// TestPrometheus_ReadsItsFiles: an alert of a file beside the configuration, which is always on, is on.
func TestPrometheus_ReadsItsFiles(t *testing.T) {
	t.Parallel()
	p := servers.PrometheusServer(t, &servers.PrometheusOptions{
		Config: "global: {evaluation_interval: 100ms}\nrule_files: [rules.yaml]\n",
		Files:  map[string]string{"rules.yaml": "groups: [{name: a, rules: [{alert: Always, expr: vector(1)}]}]\n"},
		Args:   []string{"--query.lookback-delta=5s"},
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for text := ""; !strings.Contains(text, `"Always"`); text = get(ctx, t, "http://"+p.Addr()+"/api/v1/alerts") {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("its alerts are %s", text)
		}
	}
}

func get(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
