package check

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

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
	holds  []*hold
	lags   []history.Event
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
	r.holds = holdsOf(r.events)
	for _, e := range r.events {
		if e.Op == history.Lag {
			r.lags = append(r.lags, e)
		}
	}
	return r, nil
}

// hold is one acquisition that succeeded, as its process saw it.
type hold struct {
	name      string
	proc, gor int
	token     uint64
	nonce     string
	call      history.Instant // of Lock
	from      history.Instant // its return
	sure      history.Instant // the last instant at which its holder made sure that it lasted
	released  history.Instant // the call of Unlock; 0 if it was not
	lost      bool
	lostAt    history.Instant
	share     history.Share // empty: alone
	weight    int
	limit     int
	again     []history.Event // re-entries
	fixed     bool            // it was not to be renewed, so its loss is as it should be
	late      []history.Event // requests that began after the deadline
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
		case e.Op == history.Acquire && e.Phase == history.Call:
			calls[at] = e.At
		case e.Op == history.Acquire && e.Phase == history.OK:
			h := &hold{
				name: e.Name, proc: e.Proc, gor: e.Gor, token: e.Token, nonce: e.Nonce, fixed: e.Fixed,
				call: calls[at], from: e.At, sure: e.At, share: e.Share, weight: e.Weight, limit: e.Limit,
			}
			if e.Deadline != 0 && e.Deadline < e.At { // it was over when it was recorded: a stop came in between
				h.from, h.sure = e.Deadline, e.Deadline
			}
			open[at] = h
			all = append(all, h)
		case open[at] != nil:
			open[at].saw(e)
		}
	}
	return all
}

// saw takes in what happened to h.
func (h *hold) saw(e history.Event) {
	switch {
	case e.Op == history.Lost:
		h.lost, h.lostAt = true, e.At
	case e.Op == history.Reenter:
		h.again = append(h.again, e)
	case e.Op == history.Release && e.Phase == history.Call:
		h.released = e.At
	case e.Phase == history.Call: // of a read or a write: it had just looked whether the hold lasts
		h.sure = e.At
		if e.Deadline != 0 && e.At > e.Deadline {
			h.sure = e.Deadline
			h.late = append(h.late, e)
		}
	}
}

// starved reports whether a process was not run for a quarter of the lease before h was lost: a renewal cannot be sent, or
// answered by the server, which has no better machine.
func (r *record) starved(h *hold) bool {
	for _, e := range r.lags {
		if e.Took > r.about.Lease/4 && e.At > h.lostAt.Add(-r.about.Lease) && e.At.Add(-e.Took) < h.lostAt {
			return true
		}
	}
	return false
}

// stood reports whether the process stood still at some time between the two instants, or the machine was too busy: then some
// process, not always this one, has noticed that it was not run.
func (r *record) stood(proc int, from, to history.Instant) bool {
	for _, e := range r.lags {
		if e.At.Add(-e.Took-settles) < to && from < e.At.Add(settles) {
			return true
		}
	}
	for _, b := range r.blows {
		hit := b.Proc == proc && (b.Fault == target.Stop || b.Fault == target.Kill)
		if hit && b.From < to && from < b.To.Add(settles) {
			return true
		}
	}
	return false
}
