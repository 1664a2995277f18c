package enginekit

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

func found() []driver.Finding {
	return []driver.Finding{
		Fine("version", "it is %d", 3), Warn("clock", "set it", "it is %v late", "much"),
		Fail("role", "name another", "it is a %s", "copy"),
		{Check: "disk", Level: driver.LevelWarn, Detail: "it is slow", Page: "disk.html"},
		Fail("rights", "", "there are none"),
	}
}

func TestExplained_SetsThePageWhereThereIsNone(t *testing.T) {
	for i, f := range Explained("page.html", found()) {
		want := "page.html"
		if f.Check == "disk" {
			want = "disk.html"
		}
		if f.Page != want {
			t.Errorf("%s has the page %q, want %q", f.Check, f.Page, want)
		}
		if i == 0 && f.Level != driver.LevelFail {
			t.Errorf("%+v comes first", f)
		}
	}
}

func TestSortFindings_PutsTheMostSeriousFirst_AndKeepsTheOrderOfTheChecks(t *testing.T) {
	findings := found()
	SortFindings(findings)
	var got []string
	for _, f := range findings {
		got = append(got, f.Check)
	}
	if want := []string{"role", "rights", "clock", "disk", "version"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReport_LogsWhatIsNotFine_AndRefusesOnlyWhatFailsIfItIsToldTo(t *testing.T) {
	const logged = `level=ERROR msg="word: role: it is a copy" check=role advice="name another"
level=ERROR msg="word: rights: there are none" check=rights advice=""
level=WARN msg="word: clock: it is much late" check=clock advice="set it"
level=WARN msg="word: disk: it is slow" check=disk advice="" page=disk.html
`
	const refused = "word: the server is not set up for locks: role: it is a copy (name another); rights: there are " +
		"none"
	for _, c := range []struct {
		policy        CheckPolicy
		findings      []driver.Finding
		logs, refuses string
	}{
		{CheckWarn, found(), logged, ""},
		{CheckRefuse, found(), logged, refused},
		{CheckRefuse, []driver.Finding{found()[0]}, "", ""},
		{CheckNone, found(), "", ""},
	} {
		var b bytes.Buffer
		log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string,
			a slog.Attr,
		) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		err := Report(t.Context(), log, "word", c.findings, c.policy)
		if b.String() != c.logs {
			t.Errorf("policy %d logs\n%swant\n%s", c.policy, b.String(), c.logs)
		}
		switch {
		case c.refuses == "" && err != nil, c.refuses != "" &&
			(err == nil || err.Error() != c.refuses || !errors.Is(err, ErrNotSetUp)):
			t.Errorf("policy %d: got %v, want %q", c.policy, err, c.refuses)
		}
	}
}

func TestParseCheckPolicy_TakesThreeWords_AndSaysWhich(t *testing.T) {
	for value, want := range map[string]CheckPolicy{"warn": CheckWarn, "refuse": CheckRefuse, "none": CheckNone} {
		if got, err := ParseCheckPolicy("word", value); got != want || err != nil {
			t.Errorf("%s: got %d, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "Warn", "strict"} {
		if _, err := ParseCheckPolicy("word", value); err == nil ||
			err.Error() != "word: check is warn, refuse or none" {
			t.Errorf("%q: got %v", value, err)
		}
	}
}
