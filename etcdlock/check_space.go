// The checks of space and history, and of what the user may not see. check.go has the list.
//
// A cluster that fills up is the usual way in which etcd stops serving locks: its history grows with each lock and
// unlock until it is compacted. So space and history are warned of before they fail.

package etcdlock

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

const (
	// usualQuota is etcd's quota if --quota-backend-bytes is not set, in bytes. Servers before 3.6 do not tell theirs.
	usualQuota = 2 << 30

	// fullSpace is the share of the quota, in percent, from which on a database counts as nearly full.
	fullSpace = 80

	// longHistory is the number of revisions from which on a cluster should have been compacted: with two revisions for
	// each turn of a lock, that is some thousand turns.
	longHistory = 10_000
)

// checkSpace: a database that has reached its quota grants nothing. The fullest one counts.
func (f *facts) checkSpace() (driver.Finding, bool) {
	var size, quota int64
	told := ""
	for _, s := range f.answered() {
		most, how := s.DbSizeQuota, ""
		// Versions before 3.6 do not tell their quota.
		if most <= 0 {
			most, how = usualQuota, " by etcd's default"
		}
		// Members are compared by how full they are, not by size, because their quotas may differ.
		if quota == 0 || float64(s.DbSize)/float64(most) > float64(size)/float64(quota) {
			size, quota, told = s.DbSize, most, how
		}
	}
	const mib = 1 << 20
	switch {
	case quota == 0:
		return driver.Finding{}, false
	case size >= quota/100*fullSpace:
		return enginekit.Warn("space", "compact and defragment, or raise --quota-backend-bytes",
			"the database has %d of %d MiB%s: a full one grants nothing", size/mib, quota/mib, told), true
	}
	return enginekit.Fine("space", "the database has %d of %d MiB%s", size/mib, quota/mib, told), true
}

// checkHistory: reading a queue costs the servers time in proportion to the history of its keys.
func (f *facts) checkHistory() (driver.Finding, bool) {
	switch {
	case f.compacted:
		return enginekit.Fine("history", "it is compacted"), true
	case f.revision == 0:
		return driver.Finding{}, false
	case f.revision >= longHistory:
		return enginekit.Warn("history", "set --auto-compaction-retention on all servers, for instance to 1h",
			"none of the %d revisions was ever compacted: that fills the disk and slows queues down", f.revision), true
	}
	return enginekit.Fine("history", "%d revisions, too few to tell whether they are compacted", f.revision), true
}

// checkPermissions says what was not checked because the user may not see it.
func (f *facts) checkPermissions() (driver.Finding, bool) {
	hidden := f.hidden
	if slices.ContainsFunc(f.endpoints, func(e *endpointFacts) bool { return isForbidden(e.err) }) {
		hidden = append([]string{"version", "leader", "space"}, hidden...)
	}
	if len(hidden) == 0 {
		return driver.Finding{}, false
	}
	return enginekit.Warn("permissions", "run interlock doctor once as a user with the role root",
		"not checked: %s; the user may not see that", strings.Join(hidden, ", ")), true
}

// isForbidden reports whether the servers say that the user lacks a right, or that there is no user.
func isForbidden(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "permission denied") ||
		strings.Contains(err.Error(), "user name is empty"))
}
