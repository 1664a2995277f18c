// The check of rights (ACL): which commands of the locks the user may not run. check_facts.go sends the question.

package redislock

import (
	"strings"

	"github.com/interlock-go/interlock/driver"
)

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
