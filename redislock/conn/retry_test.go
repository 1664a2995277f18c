package conn

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errTold = errors.New("what the try was told")

// untilTheEnd has a call told the same again and again, each try taking as long, and returns how often it was tried and
// how it ended.
func untilTheEnd(t *testing.T, j Judgement, takes time.Duration, failsOver bool) (tries int, err error) {
	t.Helper()
	var try Try
	for tries = 1; tries < 10_000; tries++ {
		time.Sleep(takes)
		wait, final := try.Next(j, errTold, failsOver)
		if final != nil {
			return tries, final
		}
		if wait {
			if err := Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatalf("%+v has no end", j)
	return tries, nil
}

func TestTry_HasAnEnd_AndSaysWhetherItMayHaveRun(t *testing.T) {
	for name, row := range map[string]struct {
		verdict   Verdict
		takes     time.Duration
		failsOver bool
		least     int // tries
		most      int
		lasts     bool // until patience is over
		open      bool // the outcome is unknown
	}{
		"unknown": {verdict: Unknown, least: 1, most: 1, open: true},
		"refused": {verdict: Refused, least: 1, most: 1},
		"later":   {verdict: Later, least: 60, most: 210, lasts: true},
		"unreached, of servers that fail over": {
			verdict: Unreached, failsOver: true, least: 60, most: 210, lasts: true,
		},
		"unreached, of a server alone":         {verdict: Unreached, least: 1, most: 1},
		"elsewhere":                            {verdict: Elsewhere, least: 60, most: 211, lasts: true},
		"a script that is forgotten each time": {verdict: NoScript, least: 4, most: 4},
		"nodes that point at each other":       {verdict: Moved, least: 60, most: 220, lasts: true},
		"nodes that point at each other, slowly": {
			verdict: Asked, takes: time.Second, least: 17, most: 17, lasts: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				tries, err := untilTheEnd(t, Judgement{Verdict: row.verdict, Addr: "a:1"}, row.takes, row.failsOver)
				var refusal *RefusedError
				if !errors.Is(err, errTold) || errors.As(err, &refusal) == row.open {
					t.Errorf("it ends with %v", err)
				}
				if tries < row.least || tries > row.most {
					t.Errorf("it was tried %d times", tries)
				}
				if took := time.Since(begin); took > patience != row.lasts {
					t.Errorf("it lasted %v", took)
				}
			})
		})
	}
}

func TestTry_Next_SaysHowTheCallIsSentNext(t *testing.T) {
	var try Try
	for i, step := range []struct {
		told  Judgement
		wait  bool
		wants Try
	}{
		{Judgement{Verdict: Unsent}, false, Try{}},
		{Judgement{Verdict: ByItself}, false, Try{Alone: true}},
		{Judgement{Verdict: NoScript}, false, Try{Alone: true, Evals: 1}},
		{Judgement{Verdict: Asked, Addr: "b:1"}, false, Try{Alone: true, Evals: 1, Asking: "b:1"}},
		{Judgement{Verdict: Later}, true, Try{Alone: true, Evals: 1}}, // it is asked where it was before
		{Judgement{Verdict: Moved, Addr: "c:1"}, false, Try{Alone: true, Evals: 1}},
		{Judgement{Verdict: Asked, Addr: "b:1"}, true, Try{Alone: true, Evals: 1, Asking: "b:1"}}, // the third redirect
		{Judgement{Verdict: Elsewhere}, false, Try{Alone: true, Evals: 1}},
		{Judgement{Verdict: Elsewhere}, true, Try{Alone: true, Evals: 1}},
	} {
		wait, final := try.Next(step.told, errTold, false)
		got := Try{Asking: try.Asking, Redirected: try.Redirected, Alone: try.Alone, Evals: try.Evals}
		if final != nil || wait != step.wait || got != step.wants {
			t.Errorf("step %d: wait %v, %v, %+v", i, wait, final, got)
		}
	}
}

// To subscribe twice does no harm.
func TestTry_OfASubscription_OutlastsABrokenConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var try Try
		if wait, final := try.NextSubscribe(Judgement{}, errTold, false); final != nil || !wait {
			t.Errorf("a broken connection: wait %v, %v", wait, final)
		}
		if _, final := try.NextSubscribe(Judgement{Answered: true}, errTold, false); !errors.Is(final, errTold) {
			t.Errorf("an answer that is not known: %v", final)
		}
		if _, final := try.NextSubscribe(Judgement{Verdict: Refused}, errTold, false); final == nil {
			t.Error("a refusal is no end")
		}
		time.Sleep(patience + time.Millisecond)
		if _, final := try.NextSubscribe(Judgement{}, errTold, false); !errors.Is(final, errTold) {
			t.Errorf("a connection that is broken after all: %v", final)
		}
	})
}

func TestPause_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var refusal *RefusedError
	var try Try
	answer := errors.New("BUSY")
	_, _ = try.Next(Judgement{Verdict: Later}, answer, false)
	if err := try.Pause(ctx); !errors.Is(err, context.Canceled) || !errors.As(err, &refusal) ||
		!errors.Is(err, answer) || err.Error() != "last answer: BUSY" {
		t.Errorf("after an answer: %v", err)
	}
	if err := Pause(ctx); !errors.Is(err, context.Canceled) || !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
}

// nodes is a Batcher with two servers: the first knows a script only after it has had its source, and sends what is for
// slot 2 to the second.
type nodes struct {
	t       *testing.T
	knows   map[*Script]bool
	parts   []int // how many jobs each pipeline had
	sources int   // how often a source was sent
}

func (n *nodes) RouteOf(_ context.Context, j *Job) (string, error) {
	if j.Call.Slot == 3 {
		return "", errTold
	}
	return j.Try.Asking, nil
}

func (n *nodes) RunPart(_ context.Context, at string, jobs []*Job) []Outcome {
	ends := make([]Outcome, len(jobs))
	n.parts = append(n.parts, len(jobs))
	sources := InSource(jobs)
	for i, j := range jobs {
		var told Judgement
		switch {
		case sources[i]:
			n.sources++
			n.knows[j.Call.Script] = true
		case !n.knows[j.Call.Script]:
			told.Verdict = NoScript
		}
		if told.Verdict == Unknown && at == "" && j.Call.Slot == 2 {
			told = Judgement{Verdict: Asked, Addr: "b:1"}
		}
		ends[i].Reply.Text = at + "/" + j.Call.Args[0]
		if told.Verdict != Unknown {
			wait, final := j.Try.Next(told, errTold, false)
			ends[i] = Outcome{Reply: Reply{Err: final}, Again: final == nil, Wait: wait}
		}
	}
	return ends
}

func TestRunBatch_TriesAgainWhatWasNotRun_AndEndsEachOnce(t *testing.T) {
	script := NewScript("return ARGV[1]")
	n := &nodes{t: t, knows: map[*Script]bool{}}
	calls := []Call{{Slot: 1, Script: script, Args: []string{"x"}}, {Slot: 2, Script: script, Args: []string{"y"}}}
	calls = append(calls, Call{Slot: 3, Script: script}, Call{Slot: 1, Script: script, Args: []string{"z"}})
	got, ends := make([]Reply, len(calls)), 0
	RunBatch(t.Context(), n, calls, func(i int, r Reply) {
		got[i] = r
		ends++
	})
	want := []Reply{{Text: "/x"}, {Text: "b:1/y"}, {Err: errTold}, {Text: "/z"}}
	if !slices.Equal(got, want) || ends != len(calls) {
		t.Errorf("got %+v by %d ends", got, ends)
	}
	// one in the pipeline, and one where it was sent on to
	if !slices.Equal(n.parts, []int{3, 3, 1}) || n.sources != 2 {
		t.Errorf("pipelines of %v calls, with %d sources", n.parts, n.sources)
	}
}

func TestRunBatch_OfVeryMany_SendsPipelinesThatAreNotTooLong(t *testing.T) {
	script := NewScript("return ARGV[1]")
	n := &nodes{t: t, knows: map[*Script]bool{script: true}}
	calls := slices.Repeat([]Call{{Slot: 1, Script: script, Args: []string{"x"}}}, 2*mostPipelined+1)
	RunBatch(t.Context(), n, calls, func(int, Reply) {})
	if !slices.Equal(n.parts, []int{mostPipelined, mostPipelined, 1}) {
		t.Errorf("pipelines of %v calls", n.parts)
	}
}

func TestInSource_SendsAScriptOncePerPipeline_UnlessThatHasFailed(t *testing.T) {
	a, b := &Call{Script: NewScript("a")}, &Call{Script: NewScript("b")}
	got := InSource([]*Job{
		{Call: a},
		{Call: a, Try: Try{Evals: 1}},
		{Call: a, Try: Try{Evals: 1}},
		{Call: b, Try: Try{Evals: 1}},
		{Call: a, Try: Try{Evals: 2}},
		{Call: a, Try: Try{Evals: 2}},
	})
	if want := []bool{false, true, false, true, true, true}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
