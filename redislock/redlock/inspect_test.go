package redlock

import (
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// Two of five nodes have voted for a candidate, and one has not answered: a lock may be held, but nobody is known to
// lead.
func TestMerge_OfVotesThatMayBeAMajority_NamesNoLeader(t *testing.T) {
	d := &Driver{quorum: 3}
	for kind, holders := range map[driver.Kind]int{driver.KindMutex: 1, driver.KindElection: 0} {
		key := driver.Key{Kind: kind, Name: "x"}
		vote := map[driver.Key]driver.LockInfo{
			key: {Holders: []driver.Holder{{Owner: joinRoundOwner("id", "o"), Token: 1}}},
		}
		none := map[driver.Key]driver.LockInfo{}
		info := d.merge(key, []map[driver.Key]driver.LockInfo{vote, vote, none, none, nil})
		if len(info.Holders) != holders || len(info.Waiters) != 1-holders {
			t.Errorf("%s: %+v", kind, info)
		}
		info = d.merge(key, []map[driver.Key]driver.LockInfo{vote, vote, vote, none, nil})
		if len(info.Holders) != 1 {
			t.Errorf("%s with three votes: %+v", kind, info)
		}
	}
}
