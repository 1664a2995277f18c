package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestAxis_HasARulerToScale_AndAColumnForEachStep(t *testing.T) {
	a := newAxis(sound().Steps) // at 0, 3, 3, 6 and 6 s
	for i := 1; i < len(a.xs); i++ {
		if a.xs[i]-a.xs[i-1] < column {
			t.Errorf("steps %d and %d are %v apart", i, i+1, a.xs[i]-a.xs[i-1])
		}
	}
	if wait, none := a.xs[1]-a.xs[0], a.xs[2]-a.xs[1]; wait != column+a.spare/2 || none != column {
		t.Errorf("half the time is %v wide, and no time %v", wait, none)
	}
	first, half, last := a.exact(a.times[0]), a.exact(a.times[1]), a.exact(a.times[4])
	if half-first != last-half {
		t.Errorf("on the ruler the halves are %v and %v", half-first, last-half)
	}
	if x := a.x(a.times[0] + 1500*time.Millisecond); x != tenth((a.xs[0]+a.xs[1])/2) {
		t.Errorf("half way between the steps is %v", x)
	}
	var labels []string
	for _, tick := range a.ticks() {
		labels = append(labels, tick.Label)
	}
	if got := strings.Join(labels, " "); got != "0 2 s 4 s 6 s" {
		t.Errorf("the ruler says %s", got)
	}
	if newAxis(nil).ticks() != nil || newAxis(sound().Steps[:1]).ticks() != nil {
		t.Error("an act without time has a ruler")
	}
}

func TestDraw_HasABarForEachRunOfSteps(t *testing.T) {
	p := draw("D0-1", flawed())
	x, end := p.axis.xs, p.axis.right()
	bar := func(from, to float64, class, label string) span { return span{from, tenth(to - from), class, label} }
	for name, c := range map[string]struct{ got, want []span }{
		"A": {p.Lanes[0].Bars, []span{bar(x[0], x[4], "holds", "")}},
		"B": {p.Lanes[1].Bars, []span{bar(x[2], x[4], "holds", "")}},
		"C": {p.Lanes[2].Bars, nil},
		"Redis": {p.Lanes[3].Bars, []span{
			bar(x[0], x[1], "server", "A"), bar(x[2], x[4], "server", "B"),
		}},
		"clashes": {p.Clashes, []span{bar(x[2], x[4], "clash", "")}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
	if len(p.Lanes) != 4 || !slices.Equal(p.Fates, []float64{x[1]}) || end != p.Width {
		t.Errorf("there are %d lanes, fates at %v and a width of %v", len(p.Lanes), p.Fates, p.Width)
	}
}

func TestDraw_ShowsWhoSaysWhatToWhom(t *testing.T) {
	p := draw("D0-2", sound())
	var classes []string
	for _, a := range p.Arrows {
		classes = append(classes, a.Class)
		if down := a.From < a.To; down == (a.Class == "reply") {
			t.Errorf("a %s goes from %d to %d", a.Class, a.From, a.To)
		}
	}
	if got := strings.Join(classes, " "); got != "request reply request reply request reply" {
		t.Errorf("the messages are %s", got)
	}
	if len(p.Marks) != 1 || p.Marks[0] != (mark{p.axis.xs[1], p.Lanes[0].Middle(), "stopped"}) {
		t.Errorf("the marks are %+v", p.Marks)
	}
}

func TestDraw_FindsTheServersOfAMessage(t *testing.T) {
	a := &story.Act{Cast: []string{"A"}, Keys: []string{"node 1", "node 2", "MariaDB: stock", "replica"}}
	message := func(who, to string) story.Step {
		return story.Step{Who: who, Message: &story.Message{To: to, Way: story.Lost}}
	}
	a.Steps = []story.Step{
		message("A", story.AllNodes), message("A", "node 2"), message("A", "MariaDB"),
		message("A", "replica, now primary"), message("redis-cli", "Redis"),
	}
	p := draw("x", a)
	var lanes, ends []string
	for _, r := range p.Lanes {
		lanes = append(lanes, r.Name)
	}
	for _, arrow := range p.Arrows {
		to := slices.IndexFunc(p.Lanes, func(r *row) bool { return r.Bar() == arrow.To })
		ends = append(ends, p.Lanes[to].Name)
		if fan := arrow.Down > 0; arrow.Class != "lost" || fan != (len(ends) == 1) {
			t.Errorf("the arrow to %s is %+v", p.Lanes[to].Name, arrow)
		}
	}
	if got := strings.Join(lanes, "|"); got != "A|redis-cli|node 1|node 2|MariaDB: stock|replica|Redis" {
		t.Errorf("the lanes are %s", got)
	}
	if got := strings.Join(ends, "|"); got != "node 1|node 2|MariaDB: stock|replica|Redis" {
		t.Errorf("the messages go to %s", got)
	}
}

func TestLease_SinksUntilItIsRenewedOrOver(t *testing.T) {
	p := draw("D0-2", sound())
	all := p.Lanes[2].Leases
	if len(all) != 2 || all[0].Class != "lease" {
		t.Fatalf("the leases are %+v", all)
	}
	var heights []string
	for point := range strings.FieldsSeq(all[0].Points) {
		_, y, _ := strings.Cut(point, ",")
		heights = append(heights, y)
	}
	// Full at 10 s, half over when it is renewed at 12 s, three quarters are left at 13 s, none at 16 s.
	want := []string{"0.0", "-18.0", "-9.0", "-18.0", "-13.5", "-13.5", "-13.5", "-13.5", "0.0", "0.0"}
	if !slices.Equal(heights, want) {
		t.Errorf("its heights are %v, want %v", heights, want)
	}

	a := flawed()
	a.Steps[0].Left = []int64{story.Forever}
	if all := draw("x", a).Lanes[3].Leases; len(all) != 2 || all[0].Class != "forever" || all[1].Class != "lease" {
		t.Errorf("with a key without an end the leases are %+v", all)
	}
}
