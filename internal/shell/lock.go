package shell

import (
	"context"
	"errors"
	"log/slog"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// A label for each call (LabelFrom). A call with a label of its own gets a Mutex of its own with the same key, as a
// campaign does. So requests, renewals and holds find the label where they find every other option. Acquire
// begins with Labelled.

// Labelled returns m with the label of the call to which ctx belongs, or m itself if calls have no labels of their own.
// It calls the user's LabelFrom, in the caller's goroutine and without Machine.Mu. The result asks for no label again.
func Labelled(ctx context.Context, m *core.Lock) *core.Lock {
	if m.Terms.LabelFrom == nil || m.Terms.Err != nil {
		return m
	}
	label := m.Terms.LabelFrom(ctx, m.Terms.Label)
	if len(label) > driver.MaxLabel || !utf8.ValidString(label) {
		tellBadLabel(ctx, m, len(label))
		label = m.Terms.Label
	}
	return withLabel(m, label)
}

// withLabel returns m with that label.
func withLabel(m *core.Lock, label string) *core.Lock {
	t := *m.Terms
	t.Label, t.LabelFrom, t.OwnLabel = label, nil, true
	return core.NewLock(m.Core, m.Name, t)
}

// tellBadLabel logs that a label does not count. It does not log the label, which may contain anything.
func tellBadLabel(ctx context.Context, m *core.Lock, size int) {
	c := ClientOf(m)
	level := slog.LevelDebug
	if c.badLabel.CompareAndSwap(false, true) {
		level = slog.LevelWarn
	}
	c.Config.Logger.LogAttrs(ctx, level,
		"interlock: LabelFrom returned what no label may be: the lock has its Label",
		slog.String("lock", m.Name), slog.String("class", m.Terms.Class), slog.Int("bytes", size),
		slog.Int("most", driver.MaxLabel))
}

// Present corrects info by what this client knows better than the engine. It knows to which of its owners a lock has
// passed on since the engine heard of it. A holder is recognised by its token, which lies in the block of a grant.
func (c *Client) Present(key driver.Key, info *driver.LockInfo) {
	c.Lock()
	defer c.Unlock()
	for g := c.EngineHolds[key.Name]; g != nil; g = g.After {
		if g.Lock.Key() != key || !g.IsHeld() || g.Lock.Terms.Share.Direct || g.Lock.Terms.Single {
			continue
		}
		for i := range info.Holders {
			h := &info.Holders[i]
			if h.Token >= g.Token && h.Token-g.Token < uint64(g.Tokens) {
				h.Owner, h.Label, h.Retained = g.Holder().Owner.ID, g.Holder().Lock.Terms.Label, false
			}
		}
	}
}

// resizedLock returns m with the limit that its semaphore has now, if err is a conflict that one of its own changes may
// have made; else nil. Programs that ask with a limit of their own are told of the conflict.
//
// A try waits no longer for a Resize under way than for a recall: the engine may not answer that for long.
func resizedLock(ctx context.Context, m *core.Lock, since int, try bool, err error) *core.Lock {
	r := m.Terms.Share.Resizes
	if r == nil || !errors.Is(err, driver.ErrConflict) || !driver.IsDefinite(err) {
		return nil
	}
	if try {
		bounded, stop := context.WithTimeout(ctx, RecallWait)
		defer stop()
		ctx = bounded
	}
	// The limit may also have changed after m was made and before the request was.
	if crossed := r.Crossed(ctx, since); ctx.Err() != nil || !crossed && r.Limit() == m.Terms.Share.Limit {
		return nil
	}
	p := *m.Terms
	p.Share.Limit = r.Limit()
	return core.NewLock(m.Core, m.Name, p)
}

// Resizer returns the engine as a Resizer, or says why it cannot resize.
func (c *Client) Resizer() (driver.Resizer, error) {
	resizer, can := c.Driver.(driver.Resizer)
	reason, lacks := c.Traits.Lacking(driver.Resizing)
	switch {
	case lacks:
		return nil, core.Unsupported(c.Traits, reason)
	case !can:
		return nil, core.Unsupported(c.Traits, "its driver is no driver.Resizer")
	}
	return resizer, nil
}
