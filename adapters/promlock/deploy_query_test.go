package promlock

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/metriclabels"
)

// query is what an expression of Prometheus names.
type query struct {
	selectors []selector
	by        []string // the labels of its aggregations
}

// selector is a metric with its conditions.
type selector struct {
	metric   string
	matchers []matcher
}

type matcher struct{ label, op, value string }

var (
	comments = regexp.MustCompile(`(?m)\s#.*$`)
	tokens   = regexp.MustCompile(`"[^"]*"|\[[^\]]*\]|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-zA-Z.]*|[=!<>]?[=~]|\S`)
	word     = regexp.MustCompile(`^[a-zA-Z_:]`)

	grouping  = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	operators = []string{"and", "or", "unless", "offset", "bool"}
)

// parseQuery reads as much of PromQL as the files of deploy have. promtool knows the rest.
func parseQuery(text string) (q query) {
	all := tokens.FindAllString(comments.ReplaceAllString(text, ""), -1)
	next := func() string {
		if len(all) == 0 {
			return ""
		}
		first := all[0]
		all = all[1:]
		return first
	}
	ahead := func() string { return strings.Join(all[:min(1, len(all))], "") }
	for len(all) > 0 {
		switch name := next(); {
		case !word.MatchString(name), slices.Contains(operators, name):
		case slices.Contains(grouping, name):
			for label := next(); label != ")" && label != ""; label = next() {
				if word.MatchString(label) {
					q.by = append(q.by, label)
				}
			}
		case ahead() == "(", slices.Contains(grouping, ahead()): // a function
		default:
			s := selector{metric: name}
			if ahead() == "{" {
				for mark := next(); mark == "{" || mark == ","; mark = next() {
					s.matchers = append(s.matchers, matcher{next(), next(), strings.Trim(next(), `"`)})
				}
			}
			q.selectors = append(q.selectors, s)
		}
	}
	return q
}

// names are the metrics and their labels, from the golden file that holds what a scrape finds.
type names map[string]family

type family struct {
	kind   string // counter, gauge or histogram
	labels []string
}

func knownNames(t *testing.T) names {
	t.Helper()
	text, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := make(names)
	for _, m := range regexp.MustCompile(`(?m)^(\w+) (\w+) \{(.*?)\}`).FindAllStringSubmatch(string(text), -1) {
		known[m[1]] = family{m[2], strings.Split(m[3], ", ")}
	}
	if len(known) == 0 {
		t.Fatal("testdata/names.txt names nothing")
	}
	return known
}

// of returns the family of a metric in a query. A histogram has three metrics, of which one has the label le.
func (n names) of(metric string) (base string, f family, is bool) {
	f, is = n[metric]
	if is {
		return metric, f, f.kind != "histogram"
	}
	base, bucket := strings.CutSuffix(metric, "_bucket")
	if !bucket {
		base = strings.TrimSuffix(strings.TrimSuffix(metric, "_count"), "_sum")
	}
	f = n[base]
	if bucket {
		f.labels = append(slices.Clone(f.labels), "le")
	}
	return base, f, f.kind == "histogram"
}

// problems says what a query names that promlock does not have.
func (n names) problems(q query) (all []string) {
	if len(q.selectors) == 0 {
		all = append(all, "there is no metric")
	}
	for _, s := range q.selectors {
		_, f, is := n.of(s.metric)
		if !is {
			all = append(all, "there is no metric "+s.metric)
			continue
		}
		for _, m := range s.matchers {
			if !slices.Contains(f.labels, m.label) {
				all = append(all, s.metric+" has no label "+m.label)
			} else if value := wrongValue(s.metric, m); value != "" {
				all = append(all, fmt.Sprintf("%s never has the %s %q", s.metric, m.label, value))
			}
		}
		for _, label := range q.by {
			if !slices.Contains(f.labels, label) {
				all = append(all, s.metric+" has no label "+label)
			}
		}
	}
	return all
}

// results are those of a call.
var results = []interlock.Result{
	interlock.ResultAcquired, interlock.ResultHeld, interlock.ResultCanceled, interlock.ResultUnavailable,
	interlock.ResultRefused, interlock.ResultLost, interlock.ResultReleased, interlock.ResultDeadlock,
	interlock.ResultConflict, interlock.ResultUnsupported, interlock.ResultClosed, interlock.ResultInvalid,
}

var kinds = []interlock.Kind{
	interlock.KindMutex, interlock.KindRWMutex, interlock.KindSemaphore, interlock.KindElection, interlock.KindLatch,
	interlock.KindCond,
}

// wrongValue returns a value that the label of m never has: an alert for it would never come.
func wrongValue(metric string, m matcher) string {
	var possible []string
	switch m.label {
	case "kind":
		possible = texts(kinds)
	case "reason":
		possible = texts(metriclabels.Reasons())
	case "local":
		possible = []string{"true", "false"}
	case "result":
		possible = texts(results)
		if metric == "interlock_renewals_total" {
			possible = []string{ok, late, failed}
		}
	default: // class and engine are anything
		return ""
	}
	for value := range strings.SplitSeq(m.value, "|") {
		if !strings.HasPrefix(value, "$") && !slices.Contains(possible, value) {
			return value
		}
	}
	return ""
}

func texts[T ~string](all []T) (s []string) {
	for _, one := range all {
		s = append(s, string(one))
	}
	return s
}

func TestProblems_AreFound(t *testing.T) {
	known := knownNames(t)
	for text, want := range map[string]string{
		`sum by (class) (interlock_lost_total{reason=~"taken|other"}[5m]) # x`: "",
		`a_metric offset 5m`:                                   "there is no metric a_metric",
		`interlock_held or interlock_holds{kind="mutex"}`:      "there is no metric interlock_holds",
		`rate(interlock_hold_duration_seconds[5m])`:            "there is no metric interlock_hold_duration_seconds",
		`interlock_hold_duration_seconds_sum{le="1"}`:          "interlock_hold_duration_seconds_sum has no label le",
		`sum by (le) (interlock_hold_duration_seconds_bucket)`: "",
		`interlock_held_bucket`:                                "there is no metric interlock_held_bucket",
		`interlock_held{class="a",name!="b"}`:                  "interlock_held has no label name",
		`sum by (class, reason) (interlock_held)`:              "interlock_held has no label reason",
		`interlock_lost_total{reason=~"taken|stolen"}`:         `interlock_lost_total never has the reason "stolen"`,
		`interlock_renewals_total{result="held"}`:              `interlock_renewals_total never has the result "held"`,
		`interlock_acquire_total{kind=~"$kind",local="1"}`:     `interlock_acquire_total never has the local "1"`,
		`max(interlock_held, b)`:                               "there is no metric b",
		`rate(5m)`:                                             "there is no metric",
	} {
		if got := strings.Join(known.problems(parseQuery(text)), "; "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
