package main

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
)

// checkDashboard has Prometheus answer what the dashboard of the repository would ask it. Each panel must have
// something to show, and each variable something to choose from.
func checkDashboard(ctx context.Context, t *testing.T, p prom) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Templating struct {
			List []struct{ Type, Definition string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	// What Grafana puts in place of its variables if all are chosen.
	chosen := strings.NewReplacer("$class", ".*", "$kind", ".*", "$engine", ".*", "$__rate_interval", "1m")
	asked := 0
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			asked++
			var data struct{ Result []answer }
			expr := chosen.Replace(target.Expr)
			if err := p.get(ctx, "query", url.Values{"query": {expr}}, &data); err != nil || len(data.Result) == 0 {
				t.Errorf("the dashboard's %s: %s has %d series (%v)", panel.Title, expr, len(data.Result), err)
			}
		}
	}
	for _, v := range board.Templating.List {
		m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if m == nil {
			continue // the data source
		}
		asked++
		var values []string
		err := p.get(ctx, "label/"+m[2]+"/values", url.Values{"match[]": {m[1]}}, &values)
		if err != nil || len(values) == 0 {
			t.Errorf("the dashboard's variable %s has the values %q (%v)", v.Definition, values, err)
		}
	}
	if asked < 10 {
		t.Errorf("only %d questions were found in the dashboard", asked)
	}
}
