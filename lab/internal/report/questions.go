package report

import "github.com/interlock-go/interlock/lab/internal/story"

// question is "who gets in next?", asked when something has happened that may let somebody in.
type question struct {
	After   int      `json:"after"`   // the step after which it is asked
	Options []string `json:"options"` // who may get in; nobody may always be
	Answer  string   `json:"answer"`  // "" is nobody, until the end of the act
	Reveal  int      `json:"reveal"`  // the step that gives the answer
}

// questions returns the questions of an act, of which no two are open at once.
func questions(a *story.Act) []question {
	var all []question
	for i := 0; i+1 < len(a.Steps); i++ {
		options := outside(a, i)
		if !opens(a, i) || len(options) == 0 {
			continue
		}
		q := question{After: i, Options: options, Reveal: len(a.Steps) - 1}
		for j := i + 1; j < len(a.Steps); j++ {
			if who := entrant(a, j); who != "" {
				q.Answer, q.Reveal = who, j
				break
			}
		}
		all = append(all, q)
		i = q.Reveal - 1 // what happens in the step of the answer may open the next one
	}
	return all
}

// opens reports whether a step may let somebody in: fate, or a holder that leaves, stops or dies.
func opens(a *story.Act, i int) bool {
	s := &a.Steps[i]
	for _, who := range a.Cast {
		if i > 0 && a.Steps[i-1].States[who] == story.Holds && s.States[who] != story.Holds {
			return true
		}
	}
	return s.Kind == story.Fate
}

// outside returns who could get in after a step.
func outside(a *story.Act, i int) []string {
	var all []string
	for _, who := range a.Cast {
		switch a.Steps[i].States[who] {
		case story.Holds, story.Still, story.Dead:
		default:
			all = append(all, who)
		}
	}
	return all
}

// entrant returns who believes to hold the lock since a step, or "". Who goes on after it stood still was in before.
func entrant(a *story.Act, i int) string {
	for _, who := range a.Cast {
		before := story.Idle
		if i > 0 {
			before = a.Steps[i-1].States[who]
		}
		if a.Steps[i].States[who] == story.Holds && before != story.Holds && before != story.Still {
			return who
		}
	}
	return ""
}
