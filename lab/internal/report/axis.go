package report

import (
	"fmt"
	"math"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// The measures of a picture, in pixels.
const (
	left   = 104 // where time begins
	column = 26  // of one step, at least
	spare  = 150 // shared out among the steps by the time that passes between them, at least
	usual  = 620 // the width of a picture, unless it has many steps
	edge   = 16  // behind the last step
)

// axis is the time of an act. Most steps follow each other within a millisecond, and then four seconds pass. A ruler
// alone would put ten steps on one pixel, and columns alone would hide the wait. So there are both: a ruler to scale,
// and below it a column for each step, wider the more time passes before the next. A line leads from one to the other.
type axis struct {
	times []time.Duration
	xs    []float64 // of the columns
	spare float64
}

func newAxis(steps []story.Step) *axis {
	a := &axis{spare: max(spare, usual-left-edge-column*float64(len(steps)))}
	for i := range steps {
		a.times = append(a.times, steps[i].At)
	}
	for i, t := range a.times {
		a.xs = append(a.xs, tenth(left+column/2+float64(i)*column+a.spare*a.share(t)))
	}
	return a
}

// share is the part of the act that is over at t, between 0 and 1.
func (a *axis) share(t time.Duration) float64 {
	if a.span() == 0 {
		return 0
	}
	return min(max(float64(t-a.times[0])/float64(a.span()), 0), 1)
}

func (a *axis) span() time.Duration {
	if len(a.times) == 0 {
		return 0
	}
	return a.times[len(a.times)-1] - a.times[0]
}

// right is where the picture ends.
func (a *axis) right() float64 { return left + float64(len(a.times))*column + a.spare + edge }

// exact is where t is on the ruler.
func (a *axis) exact(t time.Duration) float64 {
	return tenth(left + column/2 + a.share(t)*(a.right()-left-column-edge))
}

// tenth leaves out digits that nobody can see.
func tenth(x float64) float64 { return math.Round(x*10) / 10 }

// x is where t is among the columns: between two steps in proportion.
func (a *axis) x(t time.Duration) float64 {
	for i, at := range a.times {
		if t > at {
			continue
		}
		if i == 0 || t == at {
			return a.xs[i]
		}
		part := float64(t-a.times[i-1]) / float64(at-a.times[i-1])
		return tenth(a.xs[i-1] + part*(a.xs[i]-a.xs[i-1]))
	}
	return a.right()
}

// after is where step i ends: at the next one, or at the edge.
func (a *axis) after(i int) float64 {
	if i+1 < len(a.xs) {
		return a.xs[i+1]
	}
	return a.right()
}

// tick is a mark of the ruler.
type tick struct {
	X     float64
	Label string
}

// ticks returns some five marks at round times since the act began.
func (a *axis) ticks() []tick {
	span := a.span()
	if span == 0 {
		return nil
	}
	every := round(span / 5)
	var all []tick
	for t := time.Duration(0); t <= span; t += every {
		all = append(all, tick{a.exact(a.times[0] + t), short(t)})
	}
	return all
}

// round returns the next larger duration of the kind 1, 2 or 5, with zeros.
func round(d time.Duration) time.Duration {
	power := math.Pow10(int(math.Floor(math.Log10(float64(max(d, 1))))))
	for _, digit := range []float64{1, 2, 5} {
		if digit*power >= float64(d) {
			return time.Duration(digit * power)
		}
	}
	return time.Duration(10 * power)
}

// short is a time since an act began, with as many digits as its size needs.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d.Microseconds())/1000)
	default:
		return fmt.Sprintf("%.4g s", d.Seconds())
	}
}
