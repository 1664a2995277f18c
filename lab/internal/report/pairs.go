package report

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// pair is an act of the exhibit beside one of the sound lock, with the same events.
type pair struct {
	Exhibit int      `json:"exhibit"` // the act, counted from 0; -1 for none
	Sound   int      `json:"sound"`
	Rows    [][2]int `json:"rows"` // the step of each that was shown last, after each move of the player; -1 for none
}

// pairs puts the acts of a story side by side. Every act is in a pair.
func pairs(s *story.Story) []pair {
	var exhibits, sounds []int
	for i, a := range s.Acts {
		if a.Sound {
			sounds = append(sounds, i)
		} else {
			exhibits = append(exhibits, i)
		}
	}
	beside := map[int][]int{} // of an exhibit: the sound acts
	for n, i := range sounds {
		for _, e := range answered(s, i, n, exhibits) {
			beside[e] = append(beside[e], i)
		}
	}
	var all []pair
	for n, e := range exhibits {
		switch {
		case len(beside[e]) > 0:
		case len(sounds) == 0:
			beside[e] = []int{-1}
		default:
			beside[e] = []int{sounds[min(n, len(sounds)-1)]}
		}
		for _, i := range beside[e] {
			all = append(all, newPair(s, e, i))
		}
	}
	if len(exhibits) == 0 {
		for _, i := range sounds {
			all = append(all, newPair(s, -1, i))
		}
	}
	return all
}

// answered returns the exhibits whose events the n-th sound act, which is act i, repeats: those that it names, or the
// one whose title is part of its own, or the one at the same place.
func answered(s *story.Story, i, n int, exhibits []int) []int {
	a := s.Acts[i]
	var named []int
	for _, number := range a.Answers {
		if slices.Contains(exhibits, number-1) {
			named = append(named, number-1)
		}
	}
	title := strings.ToLower(a.Title.In(story.EN))
	for _, e := range exhibits {
		if len(named) == 0 && strings.Contains(title, strings.ToLower(s.Acts[e].Title.In(story.EN))) {
			return []int{e}
		}
	}
	if len(named) == 0 && len(exhibits) > 0 {
		return []int{exhibits[min(n, len(exhibits)-1)]}
	}
	return named
}

func newPair(s *story.Story, exhibit, sound int) pair {
	steps := func(i int) []story.Step {
		if i < 0 {
			return nil
		}
		return s.Acts[i].Steps
	}
	return pair{exhibit, sound, align(happenings(steps(exhibit)), happenings(steps(sound)))}
}

// happenings returns, for each step, what an audience would recognise it by on the other side: who got in, who was
// stopped, who died, who left. It is "" for words and for questions that changed nothing.
func happenings(steps []story.Step) []string {
	all := make([]string, len(steps))
	before := map[string]story.State{}
	for i := range steps {
		for who, now := range steps[i].States {
			if before[who] != now {
				all[i] = max(all[i], who+" "+string(now)) // one of them is enough
			}
		}
		for who, was := range before {
			if was == story.Holds && steps[i].States[who] == story.Idle {
				all[i] = max(all[i], who+" leaves")
			}
		}
		before = steps[i].States
	}
	return all
}

// align returns the moves of a player: on each move both sides go on by a step, and one of them waits where the same
// happens on both sides later, so that it happens together.
func align(a, b []string) [][2]int {
	rows := [][2]int{}
	i, j := 0, 0 // the steps that come next
	for _, m := range append(common(a, b), [2]int{len(a), len(b)}) {
		for i < m[0] || j < m[1] {
			i, j = min(i+1, max(i, m[0])), min(j+1, max(j, m[1]))
			rows = append(rows, [2]int{i - 1, j - 1})
		}
		if m[0] < len(a) && m[1] < len(b) {
			rows = append(rows, m)
			i, j = m[0]+1, m[1]+1
		}
	}
	return rows
}

// common returns the longest common subsequence of two lists, as pairs of places; "" is like nothing.
func common(a, b []string) [][2]int {
	best := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	same := func(i, j int) bool { return a[i] != "" && a[i] == b[j] }
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if same(i, j) {
				best[i][j] = max(best[i][j], 1+best[i+1][j+1])
			}
		}
	}
	var all [][2]int
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case same(i, j) && best[i][j] == 1+best[i+1][j+1]:
			all = append(all, [2]int{i, j})
			i, j = i+1, j+1
		case best[i+1][j] >= best[i][j+1]:
			i++
		default:
			j++
		}
	}
	return all
}
