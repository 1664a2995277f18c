package search

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestMain(m *testing.M) {
	play.ServeIfProcess()
	os.Exit(m.Run())
}

func TestCourse_WithoutFaults_IsThatOfTheModel_AndHarmless(t *testing.T) {
	for _, e := range All() {
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			steps, err := e.Steps(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := e.Break(t.Context(), t, nil)
			var sent []string
			for _, step := range s.Acts[0].Steps {
				if step.Kind == story.Asks && step.Who != "E" {
					sent = append(sent, step.Who+": "+step.Text.In(story.EN))
				}
			}
			var want []string
			for _, step := range steps {
				want = append(want, step.Name+": "+step.Text.In(story.EN))
			}
			if strings.Join(sent, "\n") != strings.Join(want, "\n") {
				t.Errorf("it sends\n%s\nand in the model\n%s", strings.Join(sent, "\n"), strings.Join(want, "\n"))
			}
			says(t, s, "Never were two inside.", "Whoever comes now gets in.")
		})
	}
}

// says fails the test unless the story has shown these things.
func says(t *testing.T, s *story.Story, texts ...string) {
	t.Helper()
	var all []string
	for _, step := range s.Acts[0].Steps {
		all = append(all, step.Who+" "+step.Text.In(story.EN))
	}
	told := strings.Join(all, "\n")
	for _, text := range texts {
		if !strings.Contains(told, text) {
			t.Errorf("%s does not say %q:\n%s", s.ID, text, told)
		}
	}
}

func TestCourse_WithFaults_FailsAsTheExhibitDoes(t *testing.T) {
	for _, c := range []struct {
		id     string
		faults []Fault
		says   []string
	}{
		{"D1", []Fault{{0, 1, Dies}}, []string{"It never opens again."}},
		{"D2", []Fault{{0, 1, Dies}}, []string{
			"A is killed before it sends EXPIRE stock 10.", "It never opens again.",
		}},
		{"D3", []Fault{{0, 1, Passes}}, []string{"Two were inside at once."}},
		{"D4", []Fault{{0, 3, Stops}, {0, 3, Passes}}, []string{
			"A stands still before it sends DEL stock.", "A goes on.", "Two were inside at once.",
		}},
		{"D5a", []Fault{{0, 2, Stops}, {0, 2, Passes}}, []string{
			"Never were two inside.", "is told that the lock was not its own",
		}},
		{"D5a", []Fault{{0, 1, Dies}}, []string{"It has opened with the end of its lease."}},
		{"D5a", []Fault{{0, 2, Loses}}, []string{"has got no answer"}},
		{"D1", []Fault{{0, 2, Cuts}}, []string{
			"A's cable is cut: DEL stock will not arrive.", "It never opens again.",
		}},
		{"D5a", []Fault{{0, 2, Cuts}}, []string{"has got no answer", "Whoever comes now gets in."}},
		{"D6b", []Fault{{0, 1, Jumps}}, []string{"clock jumps ahead by 60 s"}},
	} {
		t.Run(c.id, func(t *testing.T) {
			t.Parallel()
			e := Find(c.id)[0]
			if err := e.Check(t.Context(), c.faults); err != nil {
				t.Fatal(err)
			}
			says(t, e.Break(t.Context(), t, c.faults), c.says...)
		})
	}
}

func TestCourse_WhoWasKilledWhileItStoodStill_DoesNotGoOn(t *testing.T) {
	s := Find("D1")[0].Break(t.Context(), t, []Fault{{0, 1, Stops}, {0, 1, Dies}})
	says(t, s, "A is killed before it sends SET goods A.")
	for _, step := range s.Acts[0].Steps {
		if text := step.Text.In(story.EN); text == "A goes on." {
			t.Error(text)
		}
	}
}

func TestCourse_OffersOnlyTime_BehindTheEndOfWhoComesFirst(t *testing.T) {
	for _, e := range All() {
		steps, err := e.Steps(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last := -1
		for i, step := range steps {
			if step.Who == 0 {
				last = i
			} else if len(step.Strikes) < len(e.Strikes()) {
				t.Errorf("%s: after step %d of %s only %v are offered", e.ID, step.Nth, step.Name, step.Strikes)
			}
		}
		if got := steps[last].Strikes; !slices.Equal(got, []Action{Passes}) {
			t.Errorf("%s: after A's last step %v are offered", e.ID, got)
		}
	}
}

// Who is refused in the course without faults may get in in another, so that faults are offered there all the same.
func TestCourse_TellsOfFaultsThatFindNobody(t *testing.T) {
	for name, c := range map[string]struct {
		faults []Fault
		says   []string
	}{
		"refused":     {[]Fault{{1, 1, Dies}}, []string{"The fault “kill” does not strike: B does nothing any more."}},
		"not refused": {[]Fault{{0, 1, Passes}, {1, 1, Dies}}, []string{"B is killed before it sends SET goods B."}},
		"dead": {[]Fault{{0, 1, Dies}, {0, 1, Loses}}, []string{
			"The fault “lose the next answer” does not strike: A does nothing any more.",
		}},
		"does not get so far": {[]Fault{{0, 1, Dies}, {0, 2, Cuts}}, []string{
			"The fault “cut the cable” did not strike: A has not reached its step 2.",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says(t, Find("D3")[0].Break(t.Context(), t, c.faults), c.says...)
		})
	}
}

func TestCourse_LetsWhoIsStoppedThreeTimes_GoOnBeforeTheVerdict(t *testing.T) {
	for who := range 3 {
		t.Run(nameOf(who), func(t *testing.T) {
			t.Parallel()
			s := Find("D4")[0].Break(t.Context(), t, []Fault{{who, 1, Stops}, {who, 2, Stops}, {who, 3, Stops}})
			says(t, s, "Whoever comes now gets in.")
			for _, step := range s.Acts[0].Steps {
				if text := step.Text.In(story.EN); strings.Contains(text, "Nobody has the lock") {
					t.Error(text)
				}
			}
		})
	}
}

func TestCourse_RefusesFaultsThatDoNotFit(t *testing.T) {
	e := Find("D3")[0]
	for name, faults := range map[string][]Fault{
		"no such step":   {{0, 9, Dies}},
		"no such client": {{7, 1, Dies}},
		"no such fault":  {{0, 1, "burns"}},
		"no clocks":      {{0, 1, Jumps}},
		"A's last step":  {{0, 3, Dies}},
		"too many":       {{0, 1, Dies}, {0, 2, Dies}, {0, 3, Dies}, {1, 1, Dies}, {2, 1, Dies}},
	} {
		if e.Check(t.Context(), faults) == nil {
			t.Errorf("%s: %v is taken", name, faults)
		}
	}
	if CheckSound([]Fault{{1, 1, Dies}}) == nil || CheckSound([]Fault{{0, 1, Loses}}) == nil {
		t.Error("the sound course takes a fault that it cannot play")
	}
}

func TestSoundCourse_WithFaults_KeepsOthersOut(t *testing.T) {
	for name, c := range map[string]struct {
		faults []Fault
		says   string
	}{
		"none":                {nil, "B TryLock  →  ErrHeld"},
		"a kill":              {[]Fault{{0, 1, Dies}}, "C TryLock  →  ErrHeld"},
		"a stop, too long":    {[]Fault{{0, 2, Stops}, {0, 2, Passes}}, "The first look at lease.Err says ErrLost"},
		"a stop that is over": {[]Fault{{2, 1, Stops}}, "C goes on. lease.Err: nil"},
		"a kill of one whose lock is lost": {
			[]Fault{{0, 1, Cuts}, {0, 1, Dies}}, "The fault “kill” does not strike: A does nothing any more.",
		},
		"long work":   {[]Fault{{0, 1, Passes}}, "B TryLock  →  ErrHeld"},
		"a cut cable": {[]Fault{{0, 1, Cuts}}, "A lease.Lost fires"},
		"a cut cable of one that stands still": {
			[]Fault{{0, 1, Stops}, {0, 1, Cuts}}, "The first look at lease.Err says ErrLost",
		},
		"a server's clock that jumps, and is noticed": {
			[]Fault{{0, 1, Jumps}, {0, 1, Passes}}, "A lease.Lost fires",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := CheckSound(c.faults); err != nil {
				t.Fatal(err)
			}
			s := BreakSound(t.Context(), t, c.faults)
			says(t, s, c.says, "Never were two inside.", "Whoever comes now gets in")
			if !s.OK() {
				t.Error("not everything was shown")
			}
		})
	}
}

// Nothing keeps others out of a lock that its server has given away before its time, and the course says so.
func TestSoundCourse_WithAServersClockThatJumps_SaysThatTwoWereInside(t *testing.T) {
	s := BreakSound(t.Context(), t, []Fault{{0, 1, Jumps}})
	says(t, s, "B TryLock  →  held", "Two were inside at once.", "Whoever comes now gets in")
	if !s.OK() {
		t.Error("not everything was shown")
	}
}
