package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/adapters/promlock"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serveMetrics serves /metrics on a free port of loopback until stop is called.
func serveMetrics(ctx context.Context, m *promlock.Metrics) (addr string, stop func(), err error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(m); err != nil {
		return "", nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }() // ends with stop, and says only that
	return l.Addr().String(), func() { _ = s.Close() }, nil
}

// prom asks a Prometheus over its API.
type prom struct{ addr string }

// alert is one of the API's.
type alert struct {
	Labels, Annotations map[string]string
	State               string // pending or firing
}

// alerts returns those that are pending or firing.
func (p prom) alerts(ctx context.Context) ([]alert, error) {
	var data struct{ Alerts []alert }
	err := p.get(ctx, "alerts", nil, &data)
	return data.Alerts, err
}

// firing returns the alert of that name that fires, or false.
func (p prom) firing(ctx context.Context, name string) (alert, bool, error) {
	all, err := p.alerts(ctx)
	for _, a := range all {
		if a.State == "firing" && (name == "" || a.Labels["alertname"] == name) {
			return a, true, err
		}
	}
	return alert{}, false, err
}

// series is what an expression was over time.
type series struct {
	labels map[string]string
	points []point
}

type point struct {
	at    time.Time
	value float64
}

// answer is one series of the API's, with a point or with several.
type answer struct {
	Metric map[string]string
	Value  rawPoint
	Values []rawPoint
}

// rawPoint is a time in seconds and a value, the latter as a text.
type rawPoint struct{ point }

var errNoPoint = errors.New("this is no point of Prometheus")

// UnmarshalJSON reads it.
func (p *rawPoint) UnmarshalJSON(text []byte) error {
	var at float64
	var value string
	both := []any{&at, &value}
	if err := json.Unmarshal(text, &both); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return fmt.Errorf("%w: %s", errNoPoint, text)
	}
	p.point = point{time.UnixMilli(int64(at * 1000)), v}
	return nil
}

// value returns what the expression is now: the sum of all series. It is 0 without any.
func (p prom) value(ctx context.Context, expr string) (sum float64, err error) {
	var data struct{ Result []answer }
	err = p.get(ctx, "query", url.Values{"query": {expr}}, &data)
	for _, a := range data.Result {
		sum += a.Value.value
	}
	return sum, err
}

// history returns what the expression was, at each scrape.
func (p prom) history(ctx context.Context, expr string, from, to time.Time) (all []series, err error) {
	unix := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	var data struct{ Result []answer }
	err = p.get(ctx, "query_range", url.Values{
		"query": {expr}, "start": {unix(from)}, "end": {unix(to)}, "step": {scrapes.String()},
	}, &data)
	for _, a := range data.Result {
		s := series{labels: a.Metric}
		for _, v := range a.Values {
			s.points = append(s.points, v.point)
		}
		all = append(all, s)
	}
	return all, err
}

// get asks for a path of the API, and reads the data of the answer.
func (p prom) get(ctx context.Context, path string, query url.Values, data any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	at := "http://" + p.addr + "/api/v1/" + path + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	whole := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal(text, &whole); err != nil {
		return fmt.Errorf("prometheus answers %s: %.200s", response.Status, text)
	}
	if whole.Status != "success" {
		return fmt.Errorf("prometheus: %s: %s", query.Get("query"), whole.Error)
	}
	return nil
}
