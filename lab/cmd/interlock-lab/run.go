package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/report"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// atOnce is how many experiments run at the same time. They wait most of the time.
const atOnce = 4

// task is one experiment, or one search.
type task struct {
	id    string
	title story.Text
	run   func(ctx context.Context, t testing.TB) *story.Story
}

// result is what became of one task.
type result struct {
	of    task
	story *story.Story // nil if it did not come to its end
	err   error
}

// code is the exit code that the result asks for.
func (r *result) code() int {
	switch {
	case errors.Is(r.err, servers.ErrMissing):
		return exitMissing
	case r.story == nil:
		return exitFailed
	case !r.story.OK() || r.err != nil:
		return exitUnexpected
	default:
		return exitOK
	}
}

// run does what the arguments say and returns the exit code: stories on stdout, everything else on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	s, err := parse(args, getenv)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "interlock lab:", err)
		return exitUsage
	case s.help:
		return s.printHelp(stdout)
	case s.list:
		return s.print(stdout, stderr)
	case s.serve:
		return s.servePage(ctx, stdout, stderr)
	}
	if err := s.prepare(); err != nil { // before a long run, not after it
		fmt.Fprintln(stderr, "interlock lab:", err)
		return exitFailed
	}
	var stories []*story.Story
	worst := exitOK
	for r := range s.runAll(ctx) {
		if ctx.Err() != nil {
			continue // only until what runs has ended its servers
		}
		if r.story != nil {
			stories = append(stories, r.story)
		}
		worst = max(worst, r.code())
		if err := s.tell(r, stdout, stderr); err != nil {
			fmt.Fprintln(stderr, "interlock lab:", err)
			return exitFailed
		}
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if err := s.finish(stories, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "interlock lab:", err)
		return exitFailed
	}
	return worst
}

// runAll runs the tasks, some of them at the same time, and yields what became of them in their order.
func (s *settings) runAll(ctx context.Context) func(yield func(*result) bool) {
	return func(yield func(*result) bool) {
		slots := make(chan struct{}, atOnce)
		tasks := s.tasks()
		results := make([]chan *result, len(tasks))
		for i := range results {
			results[i] = make(chan *result, 1) // an experiment ends whether anybody looks or not
		}
		go func() { // ends when the last experiment has begun
			for i, one := range tasks {
				slots <- struct{}{}
				go func() {
					results[i] <- runOne(ctx, one)
					<-slots
				}()
			}
		}()
		for _, c := range results {
			if !yield(<-c) {
				return
			}
		}
	}
}

func runOne(ctx context.Context, one task) *result {
	r := &result{of: one}
	r.err = play.Alone(func(t testing.TB) { r.story = one.run(ctx, t) })
	return r
}

// tell prints one result.
func (s *settings) tell(r *result, stdout, stderr io.Writer) error {
	if r.err != nil {
		fmt.Fprintf(stderr, "interlock lab: %s: %v\n", r.of.id, r.err)
	}
	switch {
	case r.story == nil || s.json:
		return nil
	case s.report != "": // the page has the stories
		_, err := fmt.Fprintf(stdout, "%-4s %s: %s\n", r.of.id, r.of.title.In(s.lang), r.story.Verdict().In(s.lang))
		return err
	default:
		if err := r.story.Print(stdout, story.Style{Lang: s.lang, Wire: s.wire}); err != nil {
			return err
		}
		_, err := fmt.Fprintln(stdout)
		return err
	}
}

// prepare finds out whether the report can be written.
func (s *settings) prepare() error {
	if s.report == "" {
		return nil
	}
	file, err := os.OpenFile(s.report, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// finish writes what is written when all have run.
func (s *settings) finish(stories []*story.Story, stdout, stderr io.Writer) error {
	if s.json {
		if err := encode(stdout, stories); err != nil {
			return err
		}
	}
	if s.report == "" {
		return nil
	}
	file, err := os.Create(s.report)
	if err != nil {
		return err
	}
	if err := errors.Join(report.Write(file, stories, s.lang), file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "interlock lab: %s\n", story.T("wrote %s", "已写入 %s", s.report).In(s.lang))
	return nil
}

// print lists the experiments.
func (s *settings) print(stdout, stderr io.Writer) int {
	if s.json {
		type entry struct {
			ID    string     `json:"id"`
			Title story.Text `json:"title"`
			About story.Text `json:"about"`
			Needs []string   `json:"needs"`
		}
		var all []entry
		for _, e := range s.chosen {
			all = append(all, entry{e.ID, e.Title, e.About, e.Needs})
		}
		if err := encode(stdout, all); err != nil {
			fmt.Fprintln(stderr, "interlock lab:", err)
			return exitFailed
		}
		return exitOK
	}
	for _, e := range s.chosen {
		fmt.Fprintf(stdout, "%-4s %s\n", e.ID, e.Title.In(s.lang))
	}
	fmt.Fprint(stderr, "\n", usage.In(s.lang))
	return exitOK
}

func encode(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
