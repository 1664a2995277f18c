package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// record is all that a run has left.
type record struct {
	about  run.About
	target *target.Target
	events []history.Event
	log    []register.Entry
	blows  []run.Blow
	holds  []*hold // in the order of their grants
	byName map[string][]*hold
	lags   []history.Event // that tell of the machine: when a process was not run for longer than notable
	short  []history.Event // when one was not run for less than that
	disk   []history.Event // when the servers' disk was slow
}

func load(dir string) (*record, error) {
	r := &record{}
	text, err := os.ReadFile(filepath.Join(dir, run.AboutFile))
	if err != nil {
		return nil, fmt.Errorf("%w; is this the folder of a run that has ended?", err)
	}
	if err := json.Unmarshal(text, &r.about); err != nil {
		return nil, err
	}
	if r.target, err = target.Find(r.about.Engine); err != nil {
		return nil, err
	}
	if r.events, err = history.Load(dir); err != nil {
		return nil, err
	}
	if r.log, err = history.LoadLines[register.Entry](filepath.Join(dir, register.LogFile)); err != nil {
		return nil, err
	}
	if r.blows, err = history.LoadLines[run.Blow](filepath.Join(dir, run.FaultsFile)); err != nil {
		return nil, err
	}
	r.holds, r.byName = holdsOf(r.events), map[string][]*hold{}
	for _, h := range r.holds {
		r.byName[h.name] = append(r.byName[h.name], h)
	}
	for _, e := range r.events {
		switch {
		case e.Op == history.Disk:
			r.disk = append(r.disk, e)
		case e.Op != history.Lag || r.wasStopped(&e):
		case e.Took > notable:
			r.lags = append(r.lags, e)
		default:
			r.short = append(r.short, e)
		}
	}
	return r, nil
}

// wasStopped reports whether a process noticed that it was not run because it had been stopped, which says nothing of
// the machine and excuses nobody else.
func (r *record) wasStopped(lag *history.Event) bool {
	return slices.ContainsFunc(r.blows, func(b run.Blow) bool {
		return b.Fault == target.Stop && b.Proc == lag.Proc && b.From < lag.At &&
			lag.At.Add(-lag.Took) < b.To.Add(settles)
	})
}

// hold is one acquisition that succeeded, as its process saw it.
type hold struct {
	name      string
	proc, gor int
	life      int // of the process: how often it had been started by then
	token     uint64
	nonce     string
	call      history.Instant // of Lock
	from      history.Instant // its return
	// the last instant at which its holder made sure that it lasted; before from if it was over by then
	sure     history.Instant
	released history.Instant // the call of Unlock; 0 if it was not
	returned bool            // that call has
	gaveBack bool            // and the engine said that it was given back,
	back     history.Instant // then
	lost     bool
	lostAt   history.Instant
	told     []loss        // how its holder was told that it was lost, each time
	share    history.Share // empty: alone
	stamp    history.Share // for what its stamp was at the grant; empty if that is not recorded
	weight   int
	limit    int
	offer    history.Instant // the deadline when the latest of its requests that end something was sent
	again    []history.Event // re-entries
	fixed    bool            // it was not to be renewed, so its loss is as it should be
	late     []history.Event // requests that began after the deadline
	ended    history.Instant // if it was lost: the instant at which its holder says that it had ended
	deadline history.Instant // as it was known at the grant
	due      history.Instant // the latest that is recorded before its end
	// when it was given back or its loss was told, or its lease had run out by then; 0 if it was killed
	over    history.Instant
	modes   []mode          // of a read-write lock: in which it was, one after the other
	turns   []history.Event // what became of changes of the mode
	several bool            // it was taken together with others
	named   bool            // its owner has a name, and stands in the engine's line itself
	woken   bool            // it came after a wait for a condition
}

// never reports whether its holder was never sure of h: it was over when Lock returned, and was not
// found to last after all.
func (h *hold) never() bool { return h.sure < h.from }

// mode is a time in which a hold of a read-write lock was of one kind, and its holder sure of it.
type mode struct {
	share      history.Share
	token      uint64
	from, sure history.Instant
}

func (h *hold) String() string {
	return fmt.Sprintf("%s, process %d, goroutine %d, token %d", h.name, h.proc, h.gor, h.token)
}

// place is where a goroutine's acquisition is found.
type place struct{ proc, life, gor, seq int }

// holdsOf finds the holds, in the order in which they were granted.
func holdsOf(events []history.Event) []*hold {
	var all []*hold
	life := map[int]int{}
	open, calls := map[place]*hold{}, map[place]history.Instant{}
	for _, e := range events {
		if e.Op == history.Start && e.Phase == "" {
			life[e.Proc]++
		}
		at := place{e.Proc, life[e.Proc], e.Gor, e.Seq}
		switch {
		case isGrant(e.Op) && e.Phase == history.Call:
			calls[at] = e.At
		case isGrant(e.Op) && e.Phase == history.OK:
			h := &hold{
				name: e.Name, proc: e.Proc, gor: e.Gor, life: life[e.Proc], token: e.Token, nonce: e.Nonce,
				fixed: e.Fixed, call: calls[at], share: e.Share, weight: e.Weight, limit: e.Limit, deadline: e.Deadline,
				several: e.Several, named: e.Named, woken: e.Op == history.Wait, due: e.Deadline, stamp: e.Stamp,
			}
			h.from, h.sure = e.At, known(&e)
			h.modes = []mode{{h.share, h.token, h.from, h.from}}
			open[at] = h
			all = append(all, h)
		case open[at] != nil:
			open[at].saw(e)
		case e.Op == history.Wait && e.Reason != "": // it is told of the hold that was given up for the wait
			at.seq--
			if h := open[at]; h != nil {
				h.tell(&e, h.offer)
			}
		}
	}
	return all
}

// isGrant reports whether the operation makes a hold.
func isGrant(op history.Op) bool { return op == history.Acquire || op == history.Wait }

// known is when it was known what e says of a hold: if it was over when that was recorded, a stop came in between.
func known(e *history.Event) history.Instant {
	if e.Deadline != 0 {
		return min(e.At, e.Deadline)
	}
	return e.At
}

// saw takes in what happened to h.
func (h *hold) saw(e history.Event) {
	switch {
	case e.Op == history.Lost:
		h.lost, h.lostAt, h.ended = true, e.At, e.Deadline
		h.tell(&e, cmp.Or(e.Known, h.due))
		h.ends(&e)
	case e.Op == history.Turn && e.Phase == history.Call, e.Op == history.Leave && e.Phase == history.Call:
		h.offer = e.Deadline
	case e.Op == history.Leave:
		h.tell(&e, h.offer)
	case e.Op == history.Turn:
		h.tell(&e, h.offer)
		h.turned(e)
	case e.Op == history.Reenter:
		h.again = append(h.again, e)
	case e.Op == history.Release && e.Phase == history.Call:
		h.released, h.offer = e.At, e.Deadline
		h.ends(&e)
	case e.Op == history.Release:
		h.tell(&e, h.offer)
		h.returned, h.gaveBack, h.back = true, e.Phase == history.OK, e.At
	case (e.Op == history.Read || e.Op == history.Write) && e.Phase == history.Call:
		// it had just looked whether the hold lasts
		h.sure, h.due = known(&e), max(h.due, e.Deadline)
		if h.sure < e.At {
			h.late = append(h.late, e)
		}
		h.modes[len(h.modes)-1].sure = h.sure
	}
}

// turned takes in what became of a change of the mode.
func (h *hold) turned(e history.Event) {
	h.turns = append(h.turns, e)
	if e.Phase == history.OK {
		h.sure = max(h.sure, known(&e))
	}
	// A downgrade may have happened that was not confirmed: then others have been let in.
	if e.Phase == history.OK || e.Phase == history.Unknown && e.Share != history.Writes {
		h.modes = append(h.modes, mode{e.Share, e.Token, h.sure, h.sure})
	}
}

// wait is the time from the call of a Lock to its answer.
type wait struct {
	name     string
	share    history.Share // empty: alone
	proc     int
	gor      int
	from, to history.Instant // to is 0 if it had no answer
	// first and second are for two locks that are asked for together, both or none. The first may be held while the
	// second is waited for; the second is not asked for until the first is had. Nobody records when that is.
	first, second bool
}

// under reports whether w lasted at some time between two instants.
func (w *wait) under(from, to history.Instant) bool { return w.from < to && (w.to == 0 || w.to > from) }

// waitsOf finds the waits, also those of who was killed meanwhile.
func waitsOf(events []history.Event) []*wait {
	var all []*wait
	life := map[int]int{}
	open := map[place]*wait{}
	for _, e := range events {
		if e.Op == history.Start && e.Phase == "" {
			life[e.Proc]++
		}
		at := place{e.Proc, life[e.Proc], e.Gor, e.Seq}
		switch {
		case e.Op != history.Acquire:
		case e.Phase == history.Call:
			w := &wait{name: e.Name, share: e.Share, proc: e.Proc, gor: e.Gor, from: e.At}
			open[at] = w
			all = append(all, w)
			at.seq--
			if with := open[at]; with != nil && with.to == 0 { // a goroutine waits for one thing at a time
				w.first, with.first = w.name < with.name, with.name < w.name
				w.second, with.second = with.first, w.first
			}
		case open[at] != nil:
			open[at].to = e.At
		}
	}
	return all
}

// waitsFor are waits by the name of the lock.
type waitsFor map[string][]*wait

func (r *record) waits() waitsFor {
	all := waitsFor{}
	for _, w := range waitsOf(r.events) {
		all[w.name] = append(all[w.name], w)
	}
	return all
}
