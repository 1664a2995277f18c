package experiment

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/exhibit/d02expire"
	"github.com/interlock-go/interlock/lab/exhibit/d03blinddel"
	"github.com/interlock-go/interlock/lab/exhibit/d04getdel"
	"github.com/interlock-go/interlock/lab/exhibit/d07counter"
	"github.com/interlock-go/interlock/lab/exhibit/d12stock"
	"github.com/interlock-go/interlock/lab/internal/golden"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestMain(m *testing.M) {
	play.ServeIfProcess()
	flag.Parse()
	// Experiments wait most of the time, so more of them run at once than there are processors.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestExperiments_ShowTheirFlaws_AndTellTheStoryOfTheGoldenFile(t *testing.T) {
	for _, e := range All() {
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			s := e.Run(t.Context(), t)
			if !s.OK() {
				t.Error("not everything was shown")
			}
			sendsWhatIsPrinted(t, s, printed[e.ID])
			hasTheWire(t, s)
			for _, lang := range []story.Lang{story.EN, story.ZH} {
				var got bytes.Buffer
				if err := s.Print(&got, story.Style{Lang: lang, Golden: true}); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, e.ID+"."+string(lang)+".golden", got.Bytes())
			}
		})
	}
}

// printed has what the articles print of the exhibits, by experiment.
var printed = map[string][]exhibit.Quote{
	"D2": d02expire.Printed, "D3": d03blinddel.Printed, "D4": d04getdel.Printed, "D7": d07counter.Printed,
	"D12": d12stock.Printed,
}

// sendsWhatIsPrinted fails the test unless each quote is in what the broken acts send.
func sendsWhatIsPrinted(t *testing.T, s *story.Story, quotes []exhibit.Quote) {
	t.Helper()
	var sent strings.Builder
	for _, act := range s.Acts {
		if !act.Sound {
			for _, step := range act.Steps {
				if step.Who != "" { // the narrator quotes the articles too
					sent.WriteString(plain(step.Text.EN) + "\n")
				}
			}
		}
	}
	for _, q := range quotes {
		if !strings.Contains(sent.String(), plain(q.Code)) {
			t.Errorf("%s prints %s, which the exhibit does not send", q.Article, q.Code)
		}
	}
}

// hasTheWire fails the test unless what clients of interlock sent is there for each act in which one got a lock, and
// some of it is as that engine's clients say it.
func hasTheWire(t *testing.T, s *story.Story) {
	t.Helper()
	says := map[string]string{"Redis": "<acquire> 3 interlock:mutex:", "MariaDB": "GET_LOCK(", "ZooKeeper": "create -e"}
	for i, act := range s.Acts {
		granted := slices.ContainsFunc(act.Steps, func(s story.Step) bool {
			return strings.Contains(s.Text.EN, "ock  →  held, token")
		})
		if !act.Sound && len(act.Wire) > 0 || granted && len(act.Wire) == 0 {
			t.Errorf("%s.%d has %d lines of the wire", s.ID, i+1, len(act.Wire))
		}
		if !granted || act.Unsaid > 0 {
			continue
		}
		if !slices.ContainsFunc(act.Wire, func(w *story.Wire) bool {
			engine, _, _ := strings.Cut(w.To, " ")
			if engine == "node" {
				engine = "Redis"
			}
			return w.Answer != "" && strings.Contains(w.Text, says[engine])
		}) {
			t.Errorf("%s.%d: nobody asks for a lock on the wire", s.ID, i+1)
		}
	}
}

// plain is a command without what differs between a call in a program and the command that it sends.
func plain(code string) string {
	words := strings.FieldsFunc(strings.ToLower(code), func(r rune) bool { return strings.ContainsRune(" (),", r) })
	return strings.ReplaceAll(strings.Join(words, " "), key, "key")
}
