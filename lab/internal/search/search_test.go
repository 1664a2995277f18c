package search

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/handoff"
	"github.com/interlock-go/interlock/lab/internal/golden"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// The golden files have the shortest schedules, as a real Redis has replayed them.
func TestSearch_FindsWhatARealServerConfirms(t *testing.T) {
	for _, e := range All() {
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			s := e.Run(t.Context(), t)
			if !s.OK() {
				t.Error("not everything was shown")
			}
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

// What it finds in D6, which has the most states, is in the golden files only.
func TestSearch_OfEachExhibit_FindsItsFlaws(t *testing.T) {
	for id, want := range map[string][]Kind{
		"D1": {Never}, "D2": {Never, Robbed, Overrun}, "D3": {Robbed, Overrun}, "D4": {Robbed, Overrun},
		"D5a": {Overrun}, "D5b": {Overrun},
	} {
		requireFound(t, Find(id)[0], want...)
	}
}

// requireFound fails the test unless the search finds these ways to fail, and no others.
func requireFound(t *testing.T, e *Exhibit, want ...Kind) {
	t.Helper()
	r, err := Search(t.Context(), e, Usual)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds {
		f := r.Found[kind]
		if (f != nil) != slices.Contains(want, kind) {
			t.Errorf("%s: %s: found %+v, in %d states", e.ID, kind, f, r.States)
		}
	}
}

// recipe is a lock that is sound within the model, and what may be wrong with it.
type recipe struct {
	noLease, blind, twoCommands, trusting bool
}

// program takes with SET NX PX, releases with a script, and looks at its own clock before it acts as a holder.
func (r recipe) program(ctx context.Context, c Client) error {
	take := []string{"SET", key, c.Name(), "NX", "PX", strconv.Itoa(leased)}
	if r.noLease {
		take = take[:4]
	}
	until := c.Now().Add(leased * time.Millisecond) // from before the request was sent
	reply, err := c.Do(ctx, take...)
	switch {
	case err != nil:
		return err
	case reply != "OK":
		return errRefused
	case r.noLease || r.trusting:
		until = time.Time{}
	}
	c.Enter(until)
	_, err = c.Do(ctx, "SET", goods, c.Name())
	if c.Leave(); err != nil {
		return err
	}
	return r.release(ctx, c)
}

func (r recipe) release(ctx context.Context, c Client) error {
	switch {
	case r.twoCommands:
		if reply, err := c.Do(ctx, "GET", key); err != nil || reply != c.Name() {
			return err
		}
		fallthrough
	case r.blind:
		_, err := c.Do(ctx, "DEL", key)
		return err
	}
	_, err := c.Do(ctx, "EVAL", ownerChecked, "1", key, c.Name())
	return err
}

func TestSearch_OfASoundRecipe_FindsNothing_AndEachMutation(t *testing.T) {
	for name, c := range map[string]struct {
		recipe recipe
		want   []Kind
	}{
		"sound":                      {recipe{}, nil},
		"no lease":                   {recipe{noLease: true}, []Kind{Never}},
		"a release that asks nobody": {recipe{blind: true}, []Kind{Robbed}},
		"compare, then delete":       {recipe{twoCommands: true}, []Kind{Robbed}},
		"no look at its own clock":   {recipe{trusting: true}, []Kind{Overrun}},
	} {
		t.Run(name, func(t *testing.T) { requireFound(t, &Exhibit{ID: name, Program: c.recipe.program}, c.want...) })
	}
}

func TestSearch_OfWhatTheModelDoesNotKnow_SaysSo(t *testing.T) {
	e := &Exhibit{ID: "x", Program: func(ctx context.Context, c Client) error {
		_, err := c.Do(ctx, "HSET", key, "a", "b")
		return err
	}}
	if r, err := Search(t.Context(), e, Usual); err == nil {
		t.Errorf("it searched %+v", r)
	}
}

func TestSearch_OfTheProtocol_FindsNothing_AndARuleThatIsMissing(t *testing.T) {
	for _, r := range soundResults() {
		if !r.Complete || r.Fault != "" || r.States < 1000 {
			t.Errorf("the sound protocol: %v", r)
		}
	}
	for name, change := range map[string]func(r *handoff.Rules){
		"release by owner":            func(r *handoff.Rules) { r.HoldIDs = false },
		"trust from the answer":       func(r *handoff.Rules) { r.TrustSent = false },
		"a release that is sent once": func(r *handoff.Rules) { r.RetryUntilKnown = false },
	} {
		rules := handoff.Sound()
		change(&rules)
		found := slices.ContainsFunc(searchSound(rules), func(r handoff.Result) bool { return r.Fault != "" })
		if !found {
			t.Errorf("%s: nothing was found", name)
		}
	}
}
