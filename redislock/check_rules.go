// The single checks, by the facts of check.go, which has their list. First what a server is: its role, version,
// Cluster, eviction, writes, replicas and persistence. Each returns nil if INFO does not tell.

package redislock

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// oldest and oldestCluster are the first versions, as major*100+minor, that have what the scripts need: 6.2, and in a
// Cluster 7.0 for its sharded channels.
const oldest, oldestCluster = 602, 700

// checkRole: locks are taken on a primary. A Sentinel keeps no data, and a replica would refuse each script.
func checkRole(n *nodeFacts) *opinion {
	switch role, known := n.info["role"]; {
	case n.info["redis_mode"] == "sentinel":
		return fail("write redis+sentinel:// and the name of the primary", "this is a Sentinel, which keeps no data")
	case !known:
		return nil
	case role != "master":
		return fail("name the primary, or let Sentinels name it with redis+sentinel://",
			"the server is a replica: locks are taken on the primary")
	}
	return fine("it is a primary")
}

// version returns the product, and the version as text and as a number (7.0.15 is 700). The number is 0 if it cannot be
// read.
func (n *nodeFacts) version() (product, text string, number int) {
	product, text = "Redis", n.info["redis_version"]
	if v := n.info["valkey_version"]; v != "" {
		product, text = "Valkey", v
	}
	parts := strings.SplitN(text+".0", ".", 3)
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	if errMajor != nil || errMinor != nil {
		return product, text, 0
	}
	return product, text, major*100 + minor
}

// checkVersion: too old a server lacks commands that the scripts use. An unknown version is only a warning.
func checkVersion(n *nodeFacts) *opinion {
	if n.info == nil {
		return nil
	}
	product, text, version := n.version()
	switch {
	case version == 0:
		return warn("use Redis 6.2 or later, or Valkey", "the server does not tell a version that can be read")
	case version < oldest:
		return fail("use Redis 6.2 or later, or Valkey", "%s %s is too old", product, text)
	// Sharded channels came with Redis 7.0. In a Cluster, a push by another channel would go to every node.
	case version < oldestCluster && n.info["cluster_enabled"] == "1":
		return fail("use Redis 7.0 or later, or Valkey",
			"%s %s is too old for a Cluster: it has no sharded channels", product, text)
	}
	return fine("%s %s", product, text)
}

// checkCluster reports what the server itself says about its Cluster, and a client that does not know that it is one.
// Such a client would send each script to this node, and most would be answered MOVED.
func checkCluster(n *nodeFacts, f *facts) *opinion {
	const advice = "see CLUSTER NODES; locks of the slots that are not served cannot be taken or renewed"
	if n.info["cluster_enabled"] != "1" {
		return nil
	}
	_, _, version := n.version()
	size, known := number(n.cluster, "cluster_size")
	assigned, _ := number(n.cluster, "cluster_slots_assigned")
	sound, _ := number(n.cluster, "cluster_slots_ok")
	switch state := n.cluster["cluster_state"]; {
	// A client of an older one is told by checkVersion.
	case !f.sharded && version >= oldestCluster:
		return fail("write redis+cluster:// (or make the client one for a Cluster)",
			"this is a node of a Cluster, but the client takes it for a server that stands alone")
	case !known:
		return nil
	case state != "ok":
		return fail(advice, "cluster_state is %s", state)
	case assigned < conn.Slots:
		return fail(advice, "%d of %d slots belong to no node", conn.Slots-assigned, conn.Slots)
	case sound < conn.Slots:
		return warn(advice, "%d of %d slots are on nodes that may be down", conn.Slots-sound, conn.Slots)
	case len(f.nodes) < size:
		return warn(advice, "%d of %d primaries have answered", len(f.nodes), size)
	}
	return fine("the Cluster is sound, %d primaries", size)
}

// checkEviction: locks are keys with a time to live, so every policy but noeviction may remove them. That is a failure
// only if maxmemory is set; without a limit nothing is evicted yet.
func checkEviction(n *nodeFacts) *opinion {
	policy, known := n.info["maxmemory_policy"]
	if !known {
		return nil
	}
	const advice = "set maxmemory-policy noeviction: a server that is full then refuses new locks and keeps those " +
		"that are held"
	// Keys that were evicted may have been locks, so the number is told.
	limit, evicted := n.info["maxmemory"], ""
	if count := n.info["evicted_keys"]; count != "" && count != "0" {
		evicted = "; " + count + " keys have been evicted since it started"
	}
	switch {
	case policy != "noeviction" && limit != "0":
		return fail(advice,
			"maxmemory-policy is %s and maxmemory %s bytes: a server that is full removes locks that are held%s",
			policy, limit, evicted)
	case policy != "noeviction":
		return warn(advice,
			"maxmemory-policy is %s: if somebody sets maxmemory, locks that are held may be removed%s", policy, evicted)
	}
	return fine("nothing is evicted (maxmemory-policy is noeviction)")
}

// checkWrites: a server that cannot save its data, or lacks replicas that it must have, refuses all writes.
func checkWrites(n *nodeFacts) *opinion {
	if n.info == nil {
		return nil
	}
	need, set := strconv.Atoi(n.config["min-replicas-to-write"])
	good, counted := number(n.info, "min_slaves_good_slaves")
	switch {
	case n.info["loading"] == "1" || n.info["async_loading"] == "1":
		return fail("wait until it has read its data", "the server is loading its data")
	// A failed append-only file refuses writes always; a failed snapshot only with stop-writes-on-bgsave-error, which
	// CONFIG GET is not asked for. So the latter is only a warning.
	case n.info["aof_last_write_status"] == "err":
		return fail("see the server's log; is its disk full?",
			"the server could not write its append-only file, so it refuses writes")
	case n.info["rdb_last_bgsave_status"] == "err":
		return warn("see the server's log; is its disk full?",
			"the last snapshot failed: unless stop-writes-on-bgsave-error is no, the server refuses writes")
	case set == nil && counted && good < need:
		return fail("start the replicas, or lower min-replicas-to-write",
			"%d of the %d replicas of min-replicas-to-write are there, so the server refuses writes", good, need)
	case counted && good == 0:
		return fail("start the replicas, or set min-replicas-to-write to 0",
			"min-replicas-to-write is set but no replica is there, so the server refuses writes")
	}
	return fine("writes are accepted")
}

// checkReplicas compares the replicas that follow with the number that each grant waits for. The promoted replica may
// be any of them, so only waiting for all of them keeps every grant through a failover.
func checkReplicas(n *nodeFacts, wanted int) *opinion {
	if n.info["role"] != "master" {
		return nil
	}
	online := n.online()
	least := ""
	if v := n.config["min-replicas-to-write"]; v != "" {
		least = "; min-replicas-to-write is " + v
	}
	switch {
	// This comes before every warning: such a client gets no lock at all.
	case online < wanted:
		return fail("start the missing replicas, or wait for fewer",
			"%d replicas follow, but each lock waits for %d: none can be taken or renewed%s", online, wanted, least)
	case wanted == 0 && online > 0:
		return warn(
			fmt.Sprintf(
				"set Options.Replicas (replicas=%d in the URL) to all replicas that are configured; "+
					"min-replicas-to-write shortens the time in which locks can be lost", online),
			"%d replicas follow, and no lock waits for them: a failover can lose the latest locks, which are then "+
				"granted twice%s", online, least)
	case online > wanted:
		return warn(
			fmt.Sprintf("set Options.Replicas (replicas=%d in the URL) to all replicas that are configured", online),
			"%d replicas follow, but each lock waits for only %d: the one that is promoted may not have it%s", online,
			wanted, least)
	case wanted > 0:
		return fine("%d replicas follow, and each lock waits for all%s", online, least)
	}
	return fine("no replica follows, so there is no failover that could lose locks%s", least)
}

// checkPersistence says what a restart forgets. Without the answers to CONFIG GET it says nothing of appendfsync and
// snapshots.
func checkPersistence(n *nodeFacts) *opinion {
	const advice = "set appendonly yes and appendfsync always, or do not restart it within a lease"
	aof, known := n.info["aof_enabled"]
	if !known {
		return nil
	}
	save, saveKnown := n.config["save"]
	fsync := n.config["appendfsync"]
	switch {
	case aof == "1" && fsync == "always":
		return fine("a restart keeps all locks (appendfsync is always)")
	// Without CONFIG GET, INFO alone tells that there is a log, not how often it is forced to disk.
	case aof == "1" && fsync == "":
		return fine("a restart of the process keeps all locks (appendonly is yes)")
	case aof == "1":
		return warn("set appendfsync always if a loss of power must not forget locks",
			"appendfsync is %s: a restart of the process keeps all locks, but a loss of power forgets the latest, "+
				"which are then granted twice", fsync)
	case saveKnown && save == "":
		return warn(advice, "nothing is written to disk: a restart forgets all locks, which are then granted twice")
	case saveKnown:
		return warn(advice,
			"only snapshots are written (save %s): a restart forgets all locks since the last, which are then "+
				"granted twice", save)
	}
	return warn(advice, "appendonly is no: a restart forgets locks, which are then granted twice")
}

// The checks of limits: memory, buffers, and how long a Cluster may stand still.

const (
	// leastBuffer is the least limit for what waits to be read by a subscriber: some thousand pushes.
	leastBuffer = 1 << 20

	// fullMemory is the share of maxmemory, in percent, from which on a server counts as nearly full.
	fullMemory = 90

	// longNodeTimeout is the default of cluster-node-timeout. A primary is replaced a second or two after that time.
	// With the default Lease of 30 s, a hold whose renewal has just failed still has 20 s.
	longNodeTimeout = 15 * time.Second
)

// checkMemory: a full server that evicts nothing refuses new locks. Holds can still be renewed and released, because
// those scripts begin with a write that needs no memory.
func checkMemory(n *nodeFacts) *opinion {
	most, known := number(n.info, "maxmemory")
	used, counted := number(n.info, "used_memory")
	others, _ := number(n.info, "mem_not_counted_for_evict")
	switch used -= others; { // buffers of replicas and of the append-only file do not count against maxmemory
	case !known || !counted:
		return nil
	case most == 0:
		return fine("maxmemory is not set")
	case used >= most/100*fullMemory:
		return warn("raise maxmemory, or remove keys of other programs; locks take little",
			"%d of %d MiB are in use (maxmemory): a server that is full refuses new locks", used>>20, most>>20)
	}
	return fine("%d of %d MiB are in use (maxmemory)", used>>20, most>>20)
}

// checkCoverage: whether the slots of the other primaries are served while one primary is away.
func checkCoverage(n *nodeFacts, primaries int) *opinion {
	switch value := n.config["cluster-require-full-coverage"]; {
	case n.info["cluster_enabled"] != "1" || primaries < 2:
		return nil
	case value == "yes":
		return warn("set cluster-require-full-coverage no on all nodes, unless other programs need it",
			"cluster-require-full-coverage is yes: "+
				"while one primary is away, locks of all slots wait, and renewals fail")
	case value == "no":
		return fine("other slots go on while a primary is away (cluster-require-full-coverage is no)")
	}
	return nil
}

// checkFailover: a hold is lost if its primary is not replaced before its lease ends.
func checkFailover(n *nodeFacts) *opinion {
	ms, known := number(n.config, "cluster-node-timeout")
	if !known || n.info["cluster_enabled"] != "1" {
		return nil
	}
	timeout := time.Duration(ms) * time.Millisecond
	if timeout > longNodeTimeout {
		return warn("set cluster-node-timeout to 15000 or less, or give locks a longer Lease",
			"cluster-node-timeout is %v: "+
				"a primary that fails is replaced after that, and holds of 30 s are lost meanwhile", timeout)
	}
	return fine("a primary that fails is replaced after some %v (cluster-node-timeout)", timeout)
}

// checkBuffers: the server closes a connection with a subscription when more unread bytes than its limit wait for it.
// All grants by push of a process come over one connection, so a burst of them must fit.
func checkBuffers(n *nodeFacts) *opinion {
	setting := strings.Fields(n.config["client-output-buffer-limit"])
	// The setting is one line with four words for each class: its name, the hard limit, the soft limit and the seconds
	// of the latter.
	i := slices.Index(setting, "pubsub")
	if i < 0 || i+3 >= len(setting) {
		return nil
	}
	hard, soft, seconds := wholeNumber(setting[i+1]), wholeNumber(setting[i+2]), setting[i+3]
	if (hard > 0 && hard < leastBuffer) || (soft > 0 && soft < leastBuffer) {
		return warn("set client-output-buffer-limit pubsub to 32mb 8mb 60, the server's default",
			"client-output-buffer-limit pubsub is %d %d %s: a burst of grants can break the connection",
			hard, soft, seconds)
	}
	return fine("client-output-buffer-limit pubsub is %d %d %s", hard, soft, seconds)
}

// The checks that measure: round trips, clocks, and over which connection pushes come.

const (
	// mostClockGap is how far the clocks of primaries may be apart. Clocks that are set over a network (NTP) differ by
	// less.
	mostClockGap = 100 * time.Millisecond

	// slowTrip is a median round trip that makes pushes useless: the claim of a pushed grant must arrive within
	// mostClaim.
	slowTrip = mostClaim / 10
)

// checkLatency compares the median round trip with what a pushed grant allows.
func checkLatency(n *nodeFacts) *opinion {
	if len(n.trips) == 0 {
		return nil
	}
	median, longest := n.trips[len(n.trips)/2], n.trips[len(n.trips)-1]
	if median > slowTrip {
		return warn("bring client and server closer, and give locks long leases",
			"a round trip takes %v (longest %v): a grant by push lasts %v until it is claimed", short(median),
			short(longest), mostClaim)
	}
	return fine("a round trip takes %v (longest %v)", short(median), short(longest))
}

// short rounds a time for people.
func short(d time.Duration) time.Duration {
	if d.Abs() > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// checkClocks compares the primaries' clocks with each other. Our own is only the measure: no lock depends on it.
func checkClocks(nodes []*nodeFacts) []driver.Finding {
	var clocked []*nodeFacts
	for _, n := range nodes {
		if n.clocked {
			clocked = append(clocked, n)
		}
	}
	if len(clocked) == 0 {
		return nil
	}
	// The clock that is most behind comes first.
	slices.SortFunc(clocked, func(a, b *nodeFacts) int { return int(a.ahead - b.ahead) })
	last, first := clocked[0], clocked[len(clocked)-1]
	f := driver.Finding{Check: "clock", Level: driver.LevelOK}
	f.Detail = "the server's clock is " + aheadOrBehind(first.ahead) +
		" this machine's, on which no lock depends; the servers of a failover must agree"
	// Each difference is known only to half of its shortest round trip. What that leaves open counts in the servers'
	// favour.
	if gap := first.ahead - last.ahead; gap-(first.trips[0]+last.trips[0])/2 > mostClockGap {
		f.Level = driver.LevelWarn
		f.Detail = fmt.Sprintf(
			"the clock of %s is %v ahead of that of %s: a lock whose slot moves between them ends too early or "+
				"too late", first.addr, short(gap), last.addr)
		f.Advice = "set the servers' clocks over the network (NTP)"
	}
	return []driver.Finding{f}
}

// aheadOrBehind says how a clock that is ahead by d stands to ours.
func aheadOrBehind(d time.Duration) string {
	if d < 0 {
		return short(-d).String() + " behind"
	}
	return short(d).String() + " ahead of"
}

// checkPushes says over which connection grants arrive, which decides whether a waiter may start with the push itself.
func checkPushes(l linkFact) []driver.Finding {
	f := driver.Finding{Check: "pushes", Level: driver.LevelOK}
	switch {
	case l.err != nil:
		f.Level, f.Detail = driver.LevelFail, fmt.Sprintf("a script could not be run: %v", l.err)
		f.Advice = "see the package documentation of redislock for the rights that locking needs"
	// A transport that does not tell its connections has no finding.
	case !l.known:
		return nil
	case l.same:
		f.Detail = "pushes come over the connection of the replies (RESP3)"
	default:
		f.Detail = "pushes come over another connection than replies (RESP2), so each costs a round trip more"
		f.Advice = "let the client speak RESP3"
	}
	return []driver.Finding{f}
}

// The check of rights (ACL): which commands of the locks the user may not run.

// The commands that locks use, with arguments that name the keys and channels. They are the commands of the package
// documentation, where a test removes each right in turn. INFO and CONFIG have checks of their own, see checkSkipped.
var (
	lockingCommands = []string{
		"eval x 1 KEY", "evalsha x 1 KEY", "subscribe CHANNEL", "scan 0", "time",
		"get KEY", "mget KEY", "set KEY x", "del KEY", "hset KEY x x", "hget KEY x", "hmget KEY x", "hdel KEY x",
		"pttl KEY", "pexpire KEY 1", "pexpireat KEY 1", "zadd KEY 1 x", "zrem KEY x", "zremrangebyscore KEY 0 1",
		"zrange KEY 0 1", "zscore KEY x", "zcard KEY", "hgetall KEY", "publish CHANNEL x",
	}
	replicaCommands = []string{"wait 1 1"}
	clusterCommands = []string{
		"cluster slots", "cluster shards", "ssubscribe CHANNEL", "sunsubscribe CHANNEL", "spublish CHANNEL x", "asking",
	}
)

// rightsScript returns the commands that the user may not run with the keys and channels that they name. In each
// argument the words of one command stand on lines, since a word may have spaces. Servers before 7.0 have no ACL check
// for scripts and answer "unknown".
const rightsScript = `
if not redis.acl_check_cmd then
	return 'unknown'
end
local version, lacks = math.max(redis.REDIS_VERSION_NUM or 0, redis.VALKEY_VERSION_NUM or 0), {}
for i = 1, #ARGV do
	local words = {}
	for word in string.gmatch(ARGV[i], '[^\n]+') do
		words[#words + 1] = word
	end
	local name = words[1] == 'cluster' and words[1] .. '|' .. words[2] or words[1]
	local used = name ~= 'cluster|shards' or version >= 0x080000 -- only newer servers are asked that
	local known, may = pcall(redis.acl_check_cmd, unpack(words))
	if used and known and not may then
		lacks[#lacks + 1] = name
	end
end
return table.concat(lacks, ' ')
`

// rightsQuestion is the command that runs rightsScript on one node. It declares no key, so every node of a Cluster
// answers.
func (d *Driver) rightsQuestion() []string {
	commands := lockingCommands
	if d.opts.Replicas > 0 {
		// The full slice expression makes append copy: the list belongs to the package.
		commands = append(commands[:len(commands):len(commands)], replicaCommands...)
	}
	if d.conn.Sharded() {
		commands = append(commands[:len(commands):len(commands)], clusterCommands...)
	}
	key, _ := d.names.lock(driver.Key{Kind: driver.KindMutex, Name: "x"})
	names := strings.NewReplacer(" ", "\n", "KEY", key, "CHANNEL", d.names.channel("x"))
	question := []string{"EVAL", rightsScript, "0"}
	for _, c := range commands {
		question = append(question, names.Replace(c))
	}
	return question
}

// checkRights finds rights that only some operations need. Without this check most locks would work, and the missing
// right would show up later, in the middle of a wait or of a break.
func checkRights(n *nodeFacts, prefix string) *opinion {
	switch lacks := strings.Fields(n.lacks); {
	case n.noScripts: // since Valkey 9 Lua is a module; some servers of others never had it
		return fail("load the server's module for Lua scripts, or use a server that has EVAL",
			"the server does not know EVAL: no lock can be taken")
	case !n.asked || n.lacks == "unknown":
		return nil
	case len(lacks) > 0:
		return fail("give the user +"+strings.Join(lacks, " +")+" on ~"+prefix+"* and &"+prefix+"* "+
			"(see the package documentation of redislock)",
			"the user may not run %s: locks, or those of some kinds, cannot be taken", strings.Join(lacks, ", "))
	}
	return fine("the user may run all that locks need")
}

// The search for locks of other libraries under Diagnose. It reads keys, never writes, and is bounded.

// How much is looked at: a server may have millions of keys, and Diagnose must not be noticed there.
const (
	strangerPages = 5
	strangerPage  = 200 // keys
)

// stranger is a key that looks like a lock of another library. Its value is never kept: it is the secret that opens the
// lock.
type stranger struct{ library, key string }

// strangers are all that were found among the first keys of a server.
type strangers struct {
	found []stranger
	seen  int  // how many keys were looked at
	all   bool // these are all that there are
}

// marks recognize libraries by what they write. A value alone may be something else, so a finding is a guess and is
// reported as one. The order matters: the first mark that matches names the library.
var marks = []struct {
	library, kind string
	key, value    *regexp.Regexp // of a hash the value is its field
}{
	{"ShedLock", "string", regexp.MustCompile(`^job-lock:`), regexp.MustCompile(`^ADDED:`)},
	{"Redisson", "hash", nil, regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{27}:\d+$`)},
	{"Spring Integration", "string", regexp.MustCompile(`:`), regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{27}$`)},
	{"redsync", "string", nil, regexp.MustCompile(`^[0-9A-Za-z+/]{22}==$`)}, // 16 random bytes
	{"bsm/redislock", "string", nil, regexp.MustCompile(`^[0-9A-Za-z_-]{22}$`)},
}

// lookForStrangers looks for keys with a time to live that look like another library's lock. Locks of such a library do
// not exclude ours, which matters in the middle of a migration. Keys that the user may not read are passed over. It
// returns nil if SCAN is refused.
func lookForStrangers(ctx context.Context, node Node, prefix string) *strangers {
	s := &strangers{}
	cursor := "0"
	// Only a bounded number of pages is read, because a server may have millions of keys.
	for range strangerPages {
		answer, err := node.Do(ctx, "SCAN", cursor, "COUNT", fmt.Sprint(strangerPage))
		list, _ := answer.([]any)
		if err != nil || len(list) != 2 {
			return nil
		}
		keys, _ := list[1].([]any)
		s.look(ctx, node, prefix, keys)
		if cursor, _ = list[0].(string); cursor == "0" {
			s.all = true
			break
		}
	}
	// Servers return keys in any order, and a report should be the same from look to look.
	slices.SortFunc(s.found, func(a, b stranger) int {
		return cmp.Or(strings.Compare(a.library, b.library), strings.Compare(a.key, b.key))
	})
	return s
}

// look looks at the keys of one page, all at once, so that it costs the round trips of one key. It returns when all are
// read.
func (s *strangers) look(ctx context.Context, node Node, prefix string, keys []any) {
	var mu sync.Mutex // guards s
	var all sync.WaitGroup
	for _, k := range keys {
		key, _ := k.(string)
		if strings.HasPrefix(key, prefix) {
			continue // ours
		}
		s.seen++
		all.Go(func() {
			library := libraryOf(ctx, node, key)
			if library == "" {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			s.found = append(s.found, stranger{library, key})
		})
	}
	all.Wait()
}

// libraryOf names the library whose lock a key looks like, or returns "". It takes two to four round trips.
func libraryOf(ctx context.Context, node Node, key string) string {
	kind, _ := node.Do(ctx, "TYPE", key)
	if left, err := node.Do(ctx, "PTTL", key); err != nil || left == int64(-1) || kind != "string" && kind != "hash" {
		return "" // every library lets its locks end by themselves
	}
	var value string
	if kind == "string" {
		answer, _ := node.Do(ctx, "GETRANGE", key, "0", "63") // a lock's is shorter
		value, _ = answer.(string)
	} else if size, _ := node.Do(ctx, "HLEN", key); size == int64(1) {
		fields, _ := node.Do(ctx, "HKEYS", key)
		if list, _ := fields.([]any); len(list) == 1 {
			value, _ = list[0].(string)
		}
	}
	for _, m := range marks {
		if m.kind == kind && (m.key == nil || m.key.MatchString(key)) && m.value.MatchString(value) {
			return m.library
		}
	}
	return ""
}

// checkStrangers: locks of other libraries are no fault. But an operator who does not know of them may rely on an
// exclusion that does not exist, so it is a warning.
func checkStrangers(n *nodeFacts) *opinion {
	s := n.strangers
	if s == nil {
		return nil
	}
	of := fmt.Sprintf("%d keys", s.seen)
	if !s.all {
		of = "the first " + of
	}
	if len(s.found) == 0 {
		return fine("none of %s looks like a lock of another library", of)
	}
	var names []string
	for _, f := range s.found[:min(3, len(s.found))] {
		names = append(names, fmt.Sprintf("%q (%s)", f.key, f.library))
	}
	return warn("if programs with interlock must exclude those that made them, see docs/migration.md",
		"%d of %s look like locks of another library, for instance %s: locks of interlock do not exclude them",
		len(s.found), of, strings.Join(names, ", "))
}
