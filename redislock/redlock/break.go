// Break, on all nodes. inspect.go has the survey that it begins with.

package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
)

// Break takes a lock from the owner that has the given token: it looks at all nodes, and breaks the hold on each by the
// token that it has there, because the nodes minted different ones. It costs two round trips. It succeeds when so many
// nodes have confirmed that the others are no majority. The holder is told by push, when too few of its votes are left.
//
// It returns driver.ErrNotHeld if no hold may have a majority, and a *driver.HeldError if the token is not a current
// one.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	views := make([]map[driver.Key]driver.LockInfo, len(d.nodes))
	counts := make([][]int, len(d.nodes))
	err := d.survey(ctx, "break", key.Name, func(ctx context.Context, i int, n *redislock.Driver) (func(), error) {
		info, tokens, _, err := n.LookTokens(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() { views[i], counts[i] = map[driver.Key]driver.LockInfo{key: info}, tokens }, nil
	})
	// Without a majority of answers nothing is known of the holder.
	if err != nil {
		return err
	}
	holds, unheard := d.holdsOf(key, views)
	for i, view := range views {
		for at, h := range view[key].Holders {
			id, _ := splitRoundOwner(h.Owner)
			for _, o := range holds {
				if o.id == id {
					o.blocks[i] = blockOf(h.Token, counts[i][at])
				}
			}
		}
	}
	var other *hold
	for _, h := range holds {
		switch {
		case h.votes+unheard < d.quorum: // it cannot have a majority, so it holds nothing yet
		case h.current(d.quorum, unheard).has(token):
			return d.breakHold(ctx, key, h)
		default:
			other = h
		}
	}
	if other == nil {
		return driver.ErrNotHeld
	}
	return &driver.HeldError{
		Kind: key.Kind, Name: key.Name, Owner: other.shown.Owner, Client: other.shown.Client,
		Token: common(other.blocks, d.quorum).first, Since: other.shown.Since, Until: other.shown.Until,
	}
}

// current returns the tokens of h, as far as they are known. Nodes that have not answered may have larger ones, and so
// raise the tokens that count; an operator's token in that range is accepted.
func (h *hold) current(quorum, unheard int) block {
	b := common(h.blocks, quorum)
	blocks := make([]block, 0, len(h.blocks))
	for _, o := range h.blocks {
		if o == (block{}) && unheard > 0 {
			unheard--
			o = block{^uint64(0), ^uint64(0)}
		}
		blocks = append(blocks, o)
	}
	// If even the unheard nodes cannot tell the upper end, the known one stays.
	if up := common(blocks, quorum).last; up != ^uint64(0) {
		b.last = max(b.last, up)
	}
	return b
}

// breakHold ends h on every node. It waits for all answers or the node timeout, so the error can name the nodes that
// failed.
func (d *Driver) breakHold(ctx context.Context, key driver.Key, h *hold) error {
	ctx, cancel := context.WithTimeout(ctx, d.opts.NodeTimeout)
	defer cancel()
	said := make(chan error, len(d.nodes))
	for i, n := range d.nodes {
		started := d.spawn(func() { // ends with ctx
			said <- n.call(func(nd *redislock.Driver) error { return breakAt(ctx, nd, key, h.id, h.blocks[i]) })
		})
		if !started {
			return driver.ErrClosed
		}
	}
	without := 0
	var errs []error
	for left := len(d.nodes); left > 0; left-- {
		select {
		case err := <-said:
			// Both leave no vote of h on that node.
			if err == nil || errors.Is(err, driver.ErrNotHeld) {
				without++
			} else {
				errs = append(errs, err)
			}
		case <-d.base.Done():
			return driver.ErrClosed
		}
	}
	if without > len(d.nodes)-d.quorum {
		return nil
	}
	return &driver.UnavailableError{
		Op: "break", Name: key.Name,
		Err: fmt.Errorf("%d of %d nodes have answered, and %d are needed: %w",
			without, len(d.nodes), len(d.nodes)-d.quorum+1, errors.Join(errs...)),
	}
}

// mostBreaks is how often breakAt tries. A vote can come between two looks, and tokens change once, when the votes are
// confirmed.
const mostBreaks = 3

// breakAt ends the hold with that ID on one node, where it had these tokens. A zero block says that it had no vote
// there, or that the node had not answered: then the node is looked at first.
func breakAt(ctx context.Context, nd *redislock.Driver, key driver.Key, id string, tokens block) error {
	for range mostBreaks {
		if tokens != (block{}) {
			if err := nd.Break(ctx, key, tokens.first); !errors.Is(err, driver.ErrHeld) {
				return err
			}
		}
		// Its tokens have changed, or were not known.
		now, err := blockAt(ctx, nd, key, id)
		if err != nil {
			return err
		}
		if now == (block{}) {
			return driver.ErrNotHeld
		}
		tokens = now
	}
	return errors.New("the tokens of the hold have changed after each look")
}

// blockAt returns the tokens that a hold has on a node, or a zero block if it has no vote there.
func blockAt(ctx context.Context, nd *redislock.Driver, key driver.Key, id string) (b block, err error) {
	info, counts, _, err := nd.LookTokens(ctx, key)
	for at, h := range info.Holders {
		if known, _ := splitRoundOwner(h.Owner); known == id {
			b = blockOf(h.Token, counts[at])
		}
	}
	return b, err
}
