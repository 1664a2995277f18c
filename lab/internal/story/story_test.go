package story

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPrint_TellsAStory(t *testing.T) {
	s := &Story{
		ID: "D0", Title: T("a title", "标题"), About: T("about", "说明"),
		Acts: []*Act{{Title: T("an act", "一幕"), Steps: []Step{
			{Who: "A", Kind: Asks, Text: Same("GET k  →  1")},
			{Kind: Shown, Text: T("took %s, which is long enough to be broken", "用了 %s", Volatile("3 ms", "a moment"))},
		}}},
	}
	for _, c := range []struct {
		style Style
		want  string
	}{
		{Style{Lang: EN, Golden: true, Width: 40}, `D0  a title

  about

D0.1  an act

  1  >  A: GET k  →  1
  2  =  took <a moment>, which is long
        enough to be broken

D0: shown as expected
`},
		{Style{Lang: ZH}, `D0  标题

  说明

D0.1  一幕

  1   0.000 s >  A: GET k  →  1
  2   0.000 s =  用了 3 ms

D0：如预期重现
`},
	} {
		var b strings.Builder
		if err := s.Print(&b, c.style); err != nil {
			t.Fatal(err)
		}
		if b.String() != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.style, &b, c.want)
		}
	}
}

func TestPrint_WithTheWire_TellsItBelowTheStepsInWhichItWasSent(t *testing.T) {
	s := &Story{ID: "D0", Acts: []*Act{{
		Sound: true, Unsaid: 2,
		Steps: []Step{{At: 5, Who: "A", Kind: Asks, Text: Same("Lock")}, {At: 9, Kind: Shown, Text: Same("it is so")}},
		Wire: []*Wire{
			{At: 1, Who: "A", To: "Redis", Text: "EVALSHA <acquire>", Answer: "G"},
			{At: 7, Who: "B", To: "Redis", Push: true, Text: "message"},
			{At: 12, Who: "A", To: "Redis", Text: "PING"},
		},
	}}}
	var with, without strings.Builder
	if err := s.Print(&with, Style{Lang: EN, Wire: true}); err != nil {
		t.Fatal(err)
	}
	want := `  1   0.000 s >  A: Lock
              |  A → Redis: EVALSHA <acquire>  →  G
  2   0.000 s =  it is so
              |  B ← Redis: message
              |  A → Redis: PING
              |  and 2 more on the wire
`
	if !strings.Contains(with.String(), want) {
		t.Errorf("it prints\n%s\nwithout\n%s", &with, want)
	}
	if err := s.Print(&without, Style{Lang: EN}); err != nil || strings.Contains(without.String(), "|") {
		t.Errorf("%v; without the wire it prints\n%s", err, &without)
	}
}

func TestFold_BreaksChineseAnywhere_ButNotBeforeAMark(t *testing.T) {
	got := fold("一二三四五，六七八", "- ", "  ", 12)
	if want := "- 一二三四\n  五，六七八\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestOK_WantsAllThatWasToBeShown(t *testing.T) {
	two := Step{States: map[string]State{"A": Holds, "B": Holds}}
	still := Step{States: map[string]State{"A": Holds, "B": Still}}
	for name, c := range map[string]struct {
		acts []*Act
		want bool
	}{
		"nothing":                        {nil, false},
		"two hold the exhibit's":         {[]*Act{{Steps: []Step{two}}}, true},
		"two hold the sound one":         {[]*Act{{Sound: true, Steps: []Step{two}}}, false},
		"one of them stands still":       {[]*Act{{Sound: true, Steps: []Step{still}}}, true},
		"the resource refuses the other": {[]*Act{{Sound: true, Fenced: true, Steps: []Step{two}}}, true},
		"something is missing":           {[]*Act{{Steps: []Step{{Kind: Missing}}}}, false},
	} {
		if got := (&Story{Acts: c.acts}).OK(); got != c.want {
			t.Errorf("%s: OK is %v", name, got)
		}
	}
}

func TestText_InJSON_HasTheValueNotItsName(t *testing.T) {
	got, err := json.Marshal(T("took %s", "用了 %s", Volatile("3 ms", "a moment")))
	if want := `{"en":"took 3 ms","zh":"用了 3 ms"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
