// The keys that are stored; wire.md lists them. Everything that asks the servers builds its keys here.
//
// Three families stand below the prefix. The kinds (mutex, rw, sem, election) have the queues, whose keys decide who
// has a lock. gone and served say something about a key that has left its queue. session has what belongs to a client
// and not to a lock. All belong to the lease of some session, so whatever a client leaves behind ends with it. A change
// here is a change of the format: other versions share the cluster.

package etcdlock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/driver"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// names makes the keys of one set of locks, which begin with prefix.
type names struct{ prefix string }

// queuePrefix is what the keys of all requests for one lock begin with. The slash at its end keeps the lock "a" apart
// from the lock "ab", whose keys begin with the same letters.
func (n names) queuePrefix(key driver.Key) string {
	return n.kind(key.Kind) + escape(key.Name) + "/"
}

// kind is what the keys of all locks of a kind begin with.
func (n names) kind(k driver.Kind) string { return n.prefix + string(k) + "/" }

// queueKey is the key of one request at a time. Keys are used again: etcd remembers every key that there was until its
// history is compacted, and goes through all of a prefix when it is asked for the present ones. With a new key for each
// acquisition, a lock would become slower with each.
func (n names) queueKey(r *driver.Request, session clientv3.LeaseID, slot int) string {
	return fmt.Sprintf("%s%x-%d", n.placesOf(r), int64(session), slot)
}

// placesOf is what the keys begin with that may stand in one queue with the key of r. Those of a semaphore have its
// limit in their names, because a transaction can compare names, and not a part of a value: so a request with another
// limit is refused before it has a key that others would judge by. Earlier versions have no limit in their names.
func (n names) placesOf(r *driver.Request) string {
	if r.Kind != driver.KindSemaphore {
		return n.queuePrefix(r.Key)
	}
	return fmt.Sprintf("%s%d/", n.queuePrefix(r.Key), r.Limit)
}

// noOtherLimit compares whether all keys in the queue of a semaphore have the limit of r in their names.
func (n names) noOtherLimit(r *driver.Request) []clientv3.Cmp {
	all, same := n.queuePrefix(r.Key), n.placesOf(r)
	before := clientv3.Compare(clientv3.CreateRevision(all), "=", 0).WithRange(same)
	after := clientv3.Compare(clientv3.CreateRevision(clientv3.GetPrefixRangeEnd(same)), "=", 0)
	return []clientv3.Cmp{before, after.WithRange(clientv3.GetPrefixRangeEnd(all))}
}

// tomb is the key that refuses late copies of a request.
func (n names) tomb(key driver.Key, id string) string {
	return n.prefix + "gone/" + string(key.Kind) + "/" + escape(key.Name) + "/" + escape(id)
}

// presence is what the keys begin with that belong to a session itself. They stand apart from the queues, so that one
// watch tells a session all that concerns it, and the traffic of locks does not wake it.
func (n names) presence(session clientv3.LeaseID) string {
	return fmt.Sprintf("%ssession/%x/", n.prefix, int64(session))
}

// alive is the key that lives as long as the session. The end of the session, for whatever reason, deletes it, so a
// watch on it tells.
func (n names) alive(session clientv3.LeaseID) string { return n.presence(session) + "alive" }

// served is the key in which a session records which hold it gave back last, of those that had waited; see
// [Driver.servedOps].
func (n names) served(session clientv3.LeaseID) string {
	return fmt.Sprintf("%sserved/%x", n.prefix, int64(session))
}

// notice is the key that tells a session that one of its holds was broken: the one whose key was created at that
// revision. It names the revision and not the key, which another request of the session may use by the time that it is
// read.
func (n names) notice(session clientv3.LeaseID, revision int64) string {
	return fmt.Sprintf("%sbroken/%d", n.presence(session), revision)
}

// noticed returns the revision that a notice is about. It reports false if the key is no notice.
func (n names) noticed(session clientv3.LeaseID, notice string) (revision int64, is bool) {
	return revisionAfter(n.presence(session)+"broken/", notice)
}

// call is the key that tells a session that another client wants the lock of one of its holds: the one whose key was
// created at that revision. A second call for the same hold writes the same key, so calls do not pile up while the
// holder goes on.
func (n names) call(session clientv3.LeaseID, revision int64) string {
	return fmt.Sprintf("%swanted/%d", n.presence(session), revision)
}

// called returns the revision that a call is about. It reports false if the key is no call.
func (n names) called(session clientv3.LeaseID, call string) (revision int64, is bool) {
	return revisionAfter(n.presence(session)+"wanted/", call)
}

// revisionAfter returns the revision that a key has after the prefix.
func revisionAfter(prefix, key string) (revision int64, is bool) {
	rest, is := strings.CutPrefix(key, prefix)
	if !is {
		return 0, false
	}
	revision, err := strconv.ParseInt(rest, 10, 64)
	return revision, err == nil
}

// parse returns the lock's name in a queue key. A key that is not ours is an error: the prefix belongs to interlock.
func (n names) parse(k driver.Kind, queueKey string) (name string, err error) {
	rest, ours := strings.CutPrefix(queueKey, n.kind(k))
	name, _, both := strings.Cut(rest, "/")
	if !ours || !both || name == "" {
		return "", fmt.Errorf("etcd: the key %q is not one of interlock's", queueKey)
	}
	if name, err = unescape(name); err != nil {
		return "", fmt.Errorf("etcd: the key %q is not one of interlock's: %w", queueKey, err)
	}
	return name, nil
}

const hex = "0123456789ABCDEF"

// mustEscape reports whether b may not stand in a key as it is: the separator, the escape character, and what would
// upset a terminal. All other bytes stand for themselves, also those of characters beyond ASCII.
func mustEscape(b byte) bool { return b == '/' || b == '%' || b < ' ' || b == 0x7f }

// escape writes s as one part of a key, byte by byte, so that a prefix of a name becomes a prefix of its key.
func escape(s string) string {
	var out strings.Builder
	for i := range len(s) {
		if b := s[i]; mustEscape(b) {
			out.WriteByte('%')
			out.WriteByte(hex[b>>4])
			out.WriteByte(hex[b&15])
		} else {
			out.WriteByte(b)
		}
	}
	return out.String()
}

// unescape is the inverse of escape. It accepts nothing else, so that two keys never mean the same name.
func unescape(s string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b == '%' && i+2 < len(s) {
			high, low := strings.IndexByte(hex, s[i+1]), strings.IndexByte(hex, s[i+2])
			b = byte(high<<4 | low)
			i += 2
			// A byte that needs no escape must not be escaped, or one name would have two keys.
			if high < 0 || low < 0 || !mustEscape(b) {
				return "", fmt.Errorf("a bad escape in %q", s)
			}
		} else if mustEscape(b) {
			return "", fmt.Errorf("a byte in %q should be escaped", s)
		}
		out.WriteByte(b)
	}
	return out.String(), nil
}
