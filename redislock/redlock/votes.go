package redlock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock"
)

// What votes amount to. Nothing here asks anybody.

// stateOf says what a node's answer means for its vote.
func stateOf(err error) (voteState, *driver.HeldError) {
	var held *driver.HeldError
	switch {
	case err == nil:
		return granted, nil
	case errors.As(err, &held) && driver.IsDefinite(err):
		return refused, held
	case errors.Is(err, driver.ErrLost) && !errors.Is(err, driver.ErrUnavailable):
		return ended, nil
	}
	return failed, nil
}

// unsent reports whether a request has certainly not reached the node.
func unsent(err error) bool {
	var refused *redislock.RefusedError
	var said *nodeRefusal
	if errors.As(err, &said) {
		return !said.open
	}
	return errors.As(err, &refused) || errors.Is(err, errAway)
}

// ends is until when a vote is ours if it is not renewed, on our clock.
func (v *vote) ends() time.Time { return v.grant.Sent.Add(v.grant.Lease) }

// window is the trust window that a majority of the votes gives. It begins before the first of them was asked for, and
// ends when the first of them does. So the time that the majority took is not in it. Of more votes than needed, the
// longest are used.
func window(votes []driver.Grant, quorum int) (sent time.Time, lease time.Duration) {
	byEnd := slices.Clone(votes)
	slices.SortFunc(byEnd, func(a, b driver.Grant) int { return b.Sent.Add(b.Lease).Compare(a.Sent.Add(a.Lease)) })
	byEnd = byEnd[:quorum]
	sent = byEnd[0].Sent
	for _, g := range byEnd {
		if g.Sent.Before(sent) {
			sent = g.Sent
		}
	}
	last := byEnd[quorum-1]
	return sent, last.Sent.Add(last.Lease).Sub(sent)
}

// drift is how much earlier than a node we believe a lease to end: 1 % for clocks of different rates, and 2 ms for the
// rounding of the server's clock.
func drift(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// left is how much of a trust window is left now.
func left(sent time.Time, lease time.Duration) time.Duration {
	return lease - drift(lease) - time.Since(sent)
}

// block is a range of consecutive tokens, both ends included. The zero block is none.
type block struct{ first, last uint64 }

// tokens is the length of the range.
func (b block) tokens() int { return int(b.last-b.first) + 1 }

func (b block) has(token uint64) bool { return token >= b.first && token <= b.last }

// blockOf returns the tokens that a node has minted, or was given.
func blockOf(token uint64, tokens int) block { return block{token, token + uint64(max(tokens, 1)) - 1} }

// common returns the tokens of a hold, given what all nodes know of it; the block of a node that knows nothing is zero.
// They are the largest that a majority has reached: the q-th largest of the firsts, to the q-th largest of the lasts.
//
// If every node has voted, no node has to be told. A majority will mint only larger ones, so of the tokens of a later
// hold a majority is larger, and so is their q-th largest. If a majority was told (see [Driver.confirm]), it is what
// they were told, because fewer than a majority can have larger ones.
func common(blocks []block, quorum int) block {
	firsts, lasts := make([]uint64, len(blocks)), make([]uint64, len(blocks))
	for i, b := range blocks {
		firsts[i], lasts[i] = b.first, b.last
	}
	slices.Sort(firsts)
	slices.Sort(lasts)
	at := len(blocks) - quorum
	return block{firsts[at], lasts[at]}
}

// largest returns the tokens of a hold for which not every node has voted. They are larger than those of all earlier
// holds, since one of the nodes that were told of the latest has voted. They count only when a majority has been told.
func largest(blocks []block) block {
	return slices.MaxFunc(blocks, func(a, b block) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
}

// joinRoundOwner is the owner as the nodes keep it: behind the ID of the round, by which the parts of one hold are
// found on several nodes. Renewals change the owner but not the ID.
func joinRoundOwner(id, owner string) string { return id + " " + owner }

// splitRoundOwner splits what joinRoundOwner has made.
func splitRoundOwner(stored string) (id, owner string) {
	id, owner, ok := strings.Cut(stored, " ")
	if !ok {
		return "", stored // redislock's own, on the same server and with the same prefix
	}
	return id, owner
}

// inTheWay describes the holder that most nodes name, and returns how many do. Ties go by the ID, so that several looks
// agree.
func (rd *round) inTheWay() (driver.HeldError, int) {
	named := make(map[string][]*driver.HeldError)
	best, most := "", 0
	for i := range rd.votes {
		held := rd.votes[i].held
		if held == nil {
			continue
		}
		// Each node names the holder by the ID of its vote, which is hidden in the owner's name.
		id, _ := splitRoundOwner(held.Owner)
		named[id] = append(named[id], held)
		if n := len(named[id]); n > most || n == most && id < best {
			best, most = id, n
		}
	}
	e := driver.HeldError{Kind: rd.c.r.Kind, Name: rd.c.r.Name}
	if most == 0 {
		return e, 0
	}
	e = *named[best][0]
	_, e.Owner = splitRoundOwner(e.Owner)
	// The token is made of the votes that name this holder, like a grant's.
	e.Token = tokenOf(named[best], len(rd.votes), rd.c.d.quorum)
	return e, most
}

// tokenOf returns the token of a holder as the nodes name it, or 0 if too few do to be certain.
func tokenOf(named []*driver.HeldError, nodes, quorum int) uint64 {
	blocks := make([]block, nodes)
	for i, held := range named {
		blocks[i] = block{held.Token, held.Token}
	}
	low := common(blocks, quorum).first
	if len(named) < nodes { // the others may know larger ones
		for i := len(named); i < nodes; i++ {
			blocks[i] = block{^uint64(0), ^uint64(0)}
		}
		if common(blocks, quorum).first != low {
			return 0
		}
	}
	return low
}

// refusal is the error of a round that cannot succeed because others are in the way.
func (rd *round) refusal() error {
	held, _ := rd.inTheWay()
	return &held
}

// unreachable is the error of a round that too few nodes have answered. If a majority is impossible because nodes have
// refused, it is a refusal: a retry would not help.
func (rd *round) unreachable(op string) error {
	d, c := rd.c.d, rd.c
	var errs []error
	var said *nodeRefusal
	answer, refuse := 0, 0
	for i := range rd.votes {
		v := &rd.votes[i]
		switch {
		case v.state == failed || v.state == absent:
			if errors.As(v.err, &said) {
				refuse++
			}
			errs = append(errs, fmt.Errorf("%s: %w", d.nodes[i].name, v.err))
		case v.state == asked || v.state == queued && rd.isSilent(i):
			errs = append(errs, fmt.Errorf("%s: it does not answer", d.nodes[i].name))
		default:
			answer++
		}
	}
	why := fmt.Errorf("%d of %d nodes answer, and %d are needed: %w",
		answer, len(d.nodes), d.quorum, errors.Join(errs...))
	if refuse > len(d.nodes)-d.quorum { // the others cannot be a majority
		return &driver.RefusedError{Op: op, Name: c.r.Name, Err: why, Hint: said.hint, Open: true}
	}
	return &driver.UnavailableError{Op: op, Name: c.r.Name, Err: why}
}
