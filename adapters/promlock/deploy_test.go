package promlock

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/adapters/metriclabels"
)

const (
	rules      = "deploy/alerts.yaml"
	alertTests = "deploy/alerts_test.yaml"
	dashboard  = "deploy/grafana.json"
	page       = "docs/observability.md"
	runbook    = "docs/alerts.md"
)

// ours returns a file of the repository. The module alone, as a module cache has it, comes without them.
func ours(t *testing.T, name string) string {
	t.Helper()
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, name))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err != nil {
			t.Skip("this module is not in its repository, which has " + name)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alert is one of the rules.
type alert struct{ name, expr, severity, runbook, text string }

var (
	alertStart = regexp.MustCompile(`(?m)^ *- alert: *`)
	exprOf     = regexp.MustCompile(`(?m)^( *)expr: *(?:\|-\n((?: {9,}.*\n)+)|(.*)\n)`)
	severityOf = regexp.MustCompile(`(?m)^ *severity: (\w+)$`)
	runbookOf  = regexp.MustCompile(`(?m)^ *runbook_url: (\S+)$`)
)

// alerts reads the rules, as far as this file's layout goes.
func alerts(t *testing.T) (all []alert) {
	t.Helper()
	first := func(r *regexp.Regexp, text string) string {
		return strings.Join(append(r.FindStringSubmatch(text), "")[1:], "")
	}
	for _, text := range alertStart.Split(ours(t, rules), -1)[1:] {
		name, _, _ := strings.Cut(text, "\n")
		all = append(all, alert{
			name: name, expr: strings.TrimSpace(first(exprOf, text)), severity: first(severityOf, text),
			runbook: first(runbookOf, text), text: text,
		})
	}
	if len(all) == 0 {
		t.Fatal(rules + " has no alerts")
	}
	return all
}

// headings of the runbook that are for one alert each.
var headings = regexp.MustCompile(`(?m)^## (Interlock\w+)$`)

func TestAlerts_AreAboutMetricsThatThereAre_AndHaveARunbook(t *testing.T) {
	known := knownNames(t)
	var runbooks []string
	for _, m := range headings.FindAllStringSubmatch(ours(t, runbook), -1) {
		runbooks = append(runbooks, m[1])
	}
	for _, a := range alerts(t) {
		q := parseQuery(a.expr)
		for _, problem := range known.problems(q) {
			t.Errorf("%s: %s: %s", rules, a.name, problem)
		}
		for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(a.text, -1) {
			if label := m[1]; !q.keeps(known, label) {
				t.Errorf("%s: %s has the label %s, which its expr does not leave", rules, a.name, label)
			}
		}
		if !slices.Contains([]string{"page", "ticket"}, a.severity) {
			t.Errorf("%s: %s has the severity %q", rules, a.name, a.severity)
		}
		if want := runbook + "#" + strings.ToLower(a.name); a.runbook != want {
			t.Errorf("%s: the runbook of %s is %q, want %s", rules, a.name, a.runbook, want)
		}
		i := slices.Index(runbooks, a.name)
		if i < 0 {
			t.Errorf("%s has no heading %s", runbook, a.name)
			continue
		}
		runbooks = slices.Delete(runbooks, i, i+1)
	}
	for _, name := range runbooks {
		t.Errorf("%s has a heading %s more than %s has alerts", runbook, name, rules)
	}
}

// keeps reports whether the series that q results in have the label.
func (q query) keeps(known names, label string) bool {
	if len(q.by) > 0 {
		return slices.Contains(q.by, label)
	}
	return !slices.ContainsFunc(q.selectors, func(s selector) bool {
		_, f, _ := known.of(s.metric)
		return !slices.Contains(f.labels, label)
	})
}

// board is what the test reads of a dashboard.
type board struct {
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr, LegendFormat string }
	}
}

func TestDashboard_ShowsEachMetric_AndNoOther(t *testing.T) {
	known := knownNames(t)
	var d board
	if err := json.Unmarshal([]byte(ours(t, dashboard)), &d); err != nil {
		t.Fatal(dashboard, err)
	}
	variables, shown := d.variables(t, known), make(map[string]bool)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			q := parseQuery(target.Expr)
			for _, problem := range append(known.problems(q), unknownVariables(target.Expr, variables)...) {
				t.Errorf("%s: %s: %s", dashboard, p.Title, problem)
			}
			for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !q.keeps(known, m[1]) {
					t.Errorf("%s: %s: the legend has the label %s, and its expr has not", dashboard, p.Title, m[1])
				}
			}
			for _, s := range q.selectors {
				base, _, _ := known.of(s.metric)
				shown[base] = true
			}
		}
	}
	for name := range known {
		if !shown[name] {
			t.Errorf("%s does not show %s", dashboard, name)
		}
	}
}

// variables returns the names of those that a query may have. Their values are those of labels.
func (d *board) variables(t *testing.T, known names) []string {
	t.Helper()
	all := []string{"__rate_interval"} // Grafana's own
	for _, v := range d.Templating.List {
		all = append(all, v.Name)
		m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(v.Definition)
		if v.Type == "query" && (len(m) < 3 || !slices.Contains(known[m[1]].labels, m[2])) {
			t.Errorf("%s: the variable %s: no metric has the labels of %q", dashboard, v.Name, v.Definition)
		}
	}
	return all
}

func unknownVariables(expr string, variables []string) (problems []string) {
	for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(expr, -1) {
		if !slices.Contains(variables, m[1]) {
			problems = append(problems, "there is no variable "+m[1])
		}
	}
	return problems
}

func TestPage_ExplainsEachMetric_EachResultAndEachReason(t *testing.T) {
	known, text := knownNames(t), ours(t, page)
	for _, name := range regexp.MustCompile(`\binterlock_\w+`).FindAllString(text+ours(t, runbook), -1) {
		_, base := known[name]
		_, _, series := known.of(name)
		label := strings.TrimPrefix(name, "interlock_") // as otellock's are called in Prometheus
		if !base && !series && !slices.Contains(labelNames, label) {
			t.Errorf("%s or %s: there is no metric %s", page, runbook, name)
		}
	}
	for name := range known {
		if !strings.Contains(text, "| `"+name+"` |") {
			t.Errorf("%s: the table of metrics has no row for %s", page, name)
		}
	}
	for _, word := range append(texts(metriclabels.Reasons()), texts(results)...) {
		if !strings.Contains(text, "| `"+word+"` |") {
			t.Errorf("%s: no table has a row for %s", page, word)
		}
	}
}

// firing and quiet are the alerts that the tests of deploy have fire, and those that they have stay quiet.
var (
	firing = regexp.MustCompile(`alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:\n`)
	quiet  = regexp.MustCompile(`alertname: (\w+)\n +eval_time: \w+\n +exp_alerts: \[\]\n`)
)

// The tests themselves are promtool's, which make lint runs.
func TestAlerts_HaveATestInWhichTheyFire_AndOneInWhichTheyDoNot(t *testing.T) {
	text := ours(t, alertTests)
	tested := func(expected *regexp.Regexp, name string) bool {
		return slices.ContainsFunc(expected.FindAllStringSubmatch(text, -1),
			func(m []string) bool { return m[1] == name })
	}
	for _, a := range alerts(t) {
		if !tested(firing, a.name) || !tested(quiet, a.name) {
			t.Errorf("%s: %s fires: %v, stays quiet: %v; want both",
				alertTests, a.name, tested(firing, a.name), tested(quiet, a.name))
		}
	}
}
