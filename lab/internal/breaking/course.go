package breaking

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"testing"

	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/report"
	"github.com/interlock-go/interlock/lab/internal/search"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// course is what can be broken.
type course struct {
	ID      string          `json:"id"`
	Title   story.Text      `json:"title"`
	Steps   []search.Step   `json:"steps"`
	Strikes []search.Action `json:"strikes"`
}

// courses returns all of them, the sound lock's last.
func courses(ctx context.Context) ([]course, error) {
	var all []course
	for _, e := range search.All() {
		steps, err := e.Steps(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, course{e.ID, e.Title, steps, e.Strikes()})
	}
	return append(all, course{
		search.SoundID, search.SoundTitle(), search.SoundSteps(), search.SoundStrikes(),
	}), nil
}

// wish is what a reader wants to be played.
type wish struct {
	ID     string         `json:"id"`
	Faults []search.Fault `json:"faults"`
	Lang   story.Lang     `json:"lang"`
}

// play returns what plays the wish, or an error if it cannot be.
func (w *wish) play(ctx context.Context) (func(ctx context.Context, t testing.TB) *story.Story, error) {
	if w.ID == search.SoundID {
		return func(ctx context.Context, t testing.TB) *story.Story {
			return search.BreakSound(ctx, t, w.Faults)
		}, search.CheckSound(w.Faults)
	}
	for _, e := range search.All() {
		if e.ID == w.ID {
			return func(ctx context.Context, t testing.TB) *story.Story {
				return e.Break(ctx, t, w.Faults)
			}, e.Check(ctx, w.Faults)
		}
	}
	return nil, fmt.Errorf("there is no course %q", w.ID)
}

// breakIt plays one course, and answers with the number of the page that shows it.
func (s *Server) breakIt(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "send application/json", http.StatusUnsupportedMediaType)
		return
	}
	var want wish
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<14)).Decode(&want); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f, err := want.play(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !s.busy.TryLock() {
		http.Error(w, "another course runs; wait for its end", http.StatusConflict)
		return
	}
	defer s.busy.Unlock()
	number, err := s.run(r.Context(), f, want.Lang)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"told": number}) // nobody waits for it if it fails
}

// run plays a course and keeps the page that shows it.
func (s *Server) run(
	ctx context.Context, f func(ctx context.Context, t testing.TB) *story.Story, lang story.Lang,
) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var told *story.Story
	err := play.Alone(func(t testing.TB) { told = f(ctx, t) })
	if told == nil {
		return 0, err
	}
	var page bytes.Buffer
	if err := report.Write(&page, []*story.Story{told}, lang); err != nil {
		return 0, err
	}
	return s.keep(page.Bytes()), nil
}

// told shows what happened in a course.
func (s *Server) told(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.PathValue("number"))
	s.mu.Lock()
	page := s.pages[number]
	s.mu.Unlock()
	if err != nil || page == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", toldPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page) // a reader that is gone does not matter
}
