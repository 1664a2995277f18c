package interlock

import (
	"context"
	"log/slog"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
)

// A label for each call (LabelFrom). A call with a label of its own gets a Mutex of its own with the same key, as a
// campaign does. So requests, renewals and holds find the label where they find every other option. acquire.go
// begins with labelled.

// maxCallLabel is what every engine keeps whole of a label. Some cut off the last byte of the longest plain label.
const maxCallLabel = driver.MaxLabel

// labelled returns m with the label of the call to which ctx belongs, or m itself if calls have no labels of their own.
// It calls the user's LabelFrom, in the caller's goroutine and without Client.mu. The result asks for no label again.
func (m *lock) labelled(ctx context.Context) *lock {
	if m.p.labelFrom == nil || m.p.err != nil {
		return m
	}
	label := m.p.labelFrom(ctx, m.p.label)
	if len(label) > maxCallLabel || !utf8.ValidString(label) {
		m.tellBadLabel(ctx, len(label))
		label = m.p.label
	}
	return m.withLabel(label)
}

// withLabel returns m with that label. The mutex and its options are one allocation.
func (m *lock) withLabel(label string) *lock {
	own := &struct {
		lock
		params
	}{params: *m.p}
	own.c, own.name, own.p = m.c, m.name, &own.params
	own.params.label, own.labelFrom, own.ownLabel = label, nil, true
	return &own.lock
}

// tellBadLabel logs that a label does not count. It does not log the label, which may contain anything.
func (m *lock) tellBadLabel(ctx context.Context, size int) {
	level := slog.LevelDebug
	if m.client().badLabel.CompareAndSwap(false, true) {
		level = slog.LevelWarn
	}
	m.client().opts.Logger.LogAttrs(ctx, level,
		"interlock: LabelFrom returned what no label may be: the lock has its Label",
		slog.String("lock", m.name), slog.String("class", m.p.class), slog.Int("bytes", size),
		slog.Int("most", maxCallLabel))
}

// labelled returns the mutexes in the order of taking, each with the label of the call to which ctx belongs. It copies
// the slice only if one of them changes.
func (m *Multi) labelled(ctx context.Context) []*lock {
	locks := m.order
	for i, l := range m.order {
		own := l.labelled(ctx)
		if own == l {
			continue
		}
		if &locks[0] == &m.order[0] {
			locks = append([]*lock(nil), m.order...)
		}
		locks[i] = own
	}
	return locks
}

// present corrects info by what this client knows better than the engine. It knows to which of its owners a lock has
// passed on since the engine heard of it. A holder is recognised by its token, which lies in the block of a grant.
func (c *Client) present(key driver.Key, info *LockInfo) {
	c.lock()
	defer c.unlock()
	for g := c.grants[key.Name]; g != nil; g = g.next {
		if g.m.key() != key || g.holds.first == nil || g.m.p.share.direct || g.m.p.single {
			continue
		}
		for i := range info.Holders {
			h := &info.Holders[i]
			if h.Token >= g.Token && h.Token-g.Token < uint64(g.Tokens) {
				h.Owner, h.Label, h.Retained = g.holder().owner.id, g.holder().m.p.label, false
			}
		}
	}
}
