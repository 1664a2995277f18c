package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
)

// The promise of electing: a leader has a value, its label, that everybody can see, and changes of the leader are told
// to those who watch.

// electing is about locks whose holder has a value that everybody may read: its label.
func electing() []behaviour {
	election := func(sentence string, run func(*trial)) behaviour {
		return behaviour{
			sentence: sentence, run: run, about: driver.Ability(driver.KindElection),
			kinds: []driver.Kind{driver.KindElection},
			needs: needing(driver.Holders),
		}
	}
	watched := func(sentence string, run func(*trial)) behaviour {
		return behaviour{
			sentence: sentence, run: run, about: driver.Ability(driver.KindElection),
			kinds: []driver.Kind{driver.KindElection}, wants: watches,
		}
	}
	keeping := func(b behaviour) behaviour {
		b.ends = on(driver.Leases)
		return b
	}
	return []behaviour{
		election("one leads, and a look tells its value and its term at once", oneLeadsAndIsSeen),
		election("the value of a leader is its own, whoever waited with another", valueIsTheLeadersOwn),
		election("a value of 255 bytes is told whole", longValueIsToldWhole),
		watched("a watch tells that it has begun, of a new leader, and of its end", watchTellsOfLeaders),
		keeping(watched("a watch tells of a leader that has resigned and keeps others out", watchTellsOfTheRest)),
		watched("a watch ends with its context", watchEndsWithItsContext),
		watched("a watch of one election tells nothing of another", watchIsAboutOneElection),
	}
}

// campaign returns a request for the election of this behaviour.
func (c *client) campaign(value string) *driver.Request {
	r := c.ask(c.tr.key(driver.KindElection))
	r.Label = value
	return r
}

// seesLeader fails unless a look shows h and its value.
func (c *client) seesLeader(h *hold, when string) {
	c.tr.Helper()
	info := c.sees(h.r.Key, when)
	if len(info.Holders) != 1 || info.Holders[0].Label != h.r.Label || info.Holders[0].Token != h.g.Token ||
		info.Holders[0].Client != h.r.Client {
		c.tr.Fatalf("%s: a look tells of %+v, want one holder with value %q, token %d and client %q",
			when, info.Holders, h.r.Label, h.g.Token, h.r.Client)
	}
}

// A candidate that was refused must not be shown, and after the resignation nobody.
func oneLeadsAndIsSeen(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.campaign("host-1:8080"))
	b.seesLeader(h, "as soon as there is a leader")
	b.isRefused(b.campaign("host-2:8080"), "while another leads")
	b.seesLeader(h, "after another has tried")
	h.release()
	b.seesNobody(h.r.Key, "after the leader has resigned")
}

// The value must change with the leader: an engine that stores it with the lock would show the first one.
func valueIsTheLeadersOwn(tr *trial) {
	a, b := tr.client(), tr.client()
	h := a.take(a.campaign("host-1"))
	w := b.queue(b.campaign("host-2"))
	a.seesLeader(h, "while another waits")
	h.release()
	next := w.granted("after the leader has resigned")
	a.seesLeader(next, "as soon as the next leads")
	next.release()
}

// 255 bytes, of whatever content, must arrive whole.
func longValueIsToldWhole(tr *trial) {
	a, b := tr.client(), tr.client()
	for _, value := range []string{strings.Repeat("v", 255), strings.Repeat("锁", 85), `{"a": "b c\n"}`, "a\x00b \t"} {
		h := a.take(a.campaign(value))
		b.seesLeader(h, "with a value that is long or odd")
		h.release()
	}
}

// watching is a Watch under way.
type watching struct {
	c      *client
	cancel context.CancelFunc
	told   chan struct{} // has one place: at least one change was told
	done   chan error
}

// watch begins to watch key, and returns when it has begun.
func (c *client) watch(key driver.Key) *watching {
	c.tr.Helper()
	ctx, cancel := context.WithCancel(c.tr.Context())
	w := &watching{c: c, cancel: cancel, told: make(chan struct{}, 1), done: make(chan error, 1)}
	go func() { // ends with the watch, at the latest when the behaviour does
		w.done <- c.d.(driver.Watcher).Watch(ctx, key, func() {
			select {
			case w.told <- struct{}{}:
			default:
			}
		})
	}()
	w.tells("of its beginning")
	return w
}

// tells fails unless the watch tells of a change.
func (w *watching) tells(what string) {
	w.c.tr.Helper()
	w.c.tr.until("a watch tells "+what, func() error {
		select {
		case <-w.told:
			return nil
		case err := <-w.done:
			w.c.tr.Fatalf("a watch that was to tell %s has ended: %s", what, text(err))
		default:
		}
		return errors.New("it has not")
	})
}

// quiet lets what is still under way arrive, and forgets it.
func (w *watching) quiet() {
	w.c.tr.pass(settle)
	select {
	case <-w.told:
	default:
	}
}

// ends cancels the watch and fails unless it returns.
func (w *watching) ends() {
	w.c.tr.Helper()
	w.cancel()
	w.c.tr.until("a watch returns after its context has ended", func() error {
		select {
		case err := <-w.done:
			if err == nil || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("it says %q", text(err))
			}
			w.done <- err
			return nil
		default:
			return errors.New("it has not")
		}
	})
}

// A leader, the next one out of the queue, and the end of the last: each may be told on another path.
func watchTellsOfLeaders(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	w := c.watch(tr.key(driver.KindElection))
	w.quiet()
	h := a.take(a.campaign("host-1"))
	w.tells("of a leader")
	w.quiet()
	next := b.queue(b.campaign("host-2"))
	w.quiet()
	h.release()
	second := next.granted("after the first has resigned")
	w.tells("of the next leader")
	c.seesLeader(second, "after the watch has told")
	w.quiet()
	second.release()
	w.tells("of the end of the last leader")
	c.seesNobody(second.r.Key, "after the watch has told")
	w.ends()
}

// A leader that is only kept (Cooldown) leads no more, which is a change.
func watchTellsOfTheRest(tr *trial) {
	a, b := tr.client(), tr.client()
	w := b.watch(tr.key(driver.KindElection))
	w.quiet()
	h := a.take(a.campaign("host-1"))
	w.tells("of a leader")
	w.quiet()
	ctx, cancel := tr.bound()
	defer cancel()
	tr.must(a.d.Release(ctx, &driver.Release{Key: h.r.Key, ID: h.r.ID, Keep: longLease}), "release that keeps")
	w.tells("of a release that keeps")
	a.undo(h.r)
	w.ends()
}

// Several in turn, so that a watch that is left behind would show as a goroutine.
func watchEndsWithItsContext(tr *trial) {
	a := tr.client()
	for range 3 {
		a.watch(tr.key(driver.KindElection)).ends()
	}
}

// Neither an election with a similar name nor a mutex of the same name counts.
func watchIsAboutOneElection(tr *trial) {
	a, b := tr.client(), tr.client()
	w := b.watch(tr.key(driver.KindElection))
	w.quiet()
	r := a.campaign("host-1")
	r.Name += "-other"
	h := a.take(r)
	h.release()
	m := a.take(a.ask(tr.mutex()))
	m.release()
	tr.pass(settle)
	select {
	case <-w.told:
		tr.Errorf("a watch tells of a change although only another election and a mutex of the name have changed")
	default:
	}
	w.ends()
}
