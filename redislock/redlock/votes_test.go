package redlock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// tokenNode is a node as far as tokens go.
type tokenNode struct {
	skew, floor uint64
}

func (n *tokenNode) mint(now uint64, tokens int) block {
	first := max(n.floor+1, now+n.skew)
	if n.floor >= now+n.skew {
		tokens = 1
	}
	b := blockOf(first, tokens)
	n.floor = b.last
	return b
}

// TestTokens_Grow_WhicheverNodesVote plays grants, one after the other, of random majorities of
// nodes whose clocks differ.
func TestTokens_Grow_WhicheverNodesVote(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		size := 3 + random.IntN(5)
		quorum := size/2 + 1
		nodes := make([]tokenNode, size)
		for i := range nodes {
			nodes[i].skew = random.Uint64N(1000)
		}
		last := uint64(0)
		for now := uint64(10_000); now < 10_400; now += random.Uint64N(20) + 1 {
			got := grantOf(random, nodes, quorum, now)
			if got.first <= last || got.last < got.first {
				t.Fatalf("tokens %d to %d after %d; nodes %+v", got.first, got.last, last, nodes)
			}
			last = got.last
		}
	}
}

// grantOf is one grant.
func grantOf(random *rand.Rand, nodes []tokenNode, quorum int, now uint64) block {
	voters := random.Perm(len(nodes))[:quorum+random.IntN(len(nodes)-quorum+1)]
	blocks := make([]block, len(nodes))
	for _, i := range voters {
		blocks[i] = nodes[i].mint(now, 1+random.IntN(30))
	}
	if len(voters) == len(nodes) {
		return common(blocks, quorum)
	}
	got := largest(blocks)
	for _, i := range voters[:quorum] { // the others are not told
		nodes[i].floor = max(nodes[i].floor, got.last)
		blocks[i] = got
	}
	for i := range nodes { // a vote that comes late
		if blocks[i] == (block{}) {
			blocks[i] = nodes[i].mint(now+5000, 1)
		}
	}
	if seen := common(blocks, quorum); seen != got {
		panic("an operator would see other tokens")
	}
	return got
}

func TestWindow_IsThatOfTheVotesThatLastLongest_AndBeginsBeforeTheFirst(t *testing.T) {
	t0 := time.Now()
	at := func(sent, lease int) driver.Grant {
		return driver.Grant{Sent: t0.Add(time.Duration(sent) * time.Second), Lease: time.Duration(lease) * time.Second}
	}
	sent, lease := window([]driver.Grant{at(0, 2), at(3, 30), at(1, 30), at(5, 1), at(2, 25)}, 3)
	if sent != t0.Add(time.Second) || sent.Add(lease) != t0.Add(27*time.Second) {
		t.Errorf("from %v for %v, want from 1 s to 27 s", sent.Sub(t0), lease)
	}
}

func TestInTheWay_TellsATokenOnlyIfItIsCertain(t *testing.T) {
	named := func(tokens ...uint64) (held []*driver.HeldError) {
		for _, token := range tokens {
			held = append(held, &driver.HeldError{Token: token})
		}
		return held
	}
	for _, test := range []struct {
		held []*driver.HeldError
		want uint64
	}{
		{named(10, 12, 14, 16, 18), 14}, // all have voted: the third largest
		{named(20, 20, 20, 3), 20},      // three were told
		{named(10, 12, 14, 16), 0},      // the fifth may be anything
		{named(7), 0},
		{nil, 0},
	} {
		if got := tokenOf(test.held, 5, 3); got != test.want {
			t.Errorf("%d nodes: token %d, want %d", len(test.held), got, test.want)
		}
	}
}
