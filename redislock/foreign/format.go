// The formats of other libraries, and the scripts that read and write them. driver.go calls them.

package foreign

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// Format is how another library keeps a lock in Redis: under which key, and in which form. The zero Format is that of
// [Redsync].
type Format struct {
	key     func(name string) string // nil if the name is the key
	form    *form                    // nil for strings
	channel func(key string) string  // that its waiters listen on; nil if they poll
}

// Redsync is the format of github.com/go-redsync/redsync with one server: a string under the lock's name, with a
// random value.
func Redsync() Format { return Format{} }

// Redislock is the format of github.com/bsm/redislock: a string under the lock's name, with a random value.
func Redislock() Format { return Format{} }

// Strings is the format of every program that takes a lock by SET NX PX and gives it back if the value is still its
// own: a string under a key that is made of the lock's name.
func Strings(key func(name string) string) Format { return Format{key: key} }

// Spring is the format of Spring Integration's RedisLockRegistry: a string under "REGISTRY:NAME". Its waiters poll
// unless they were told to subscribe (RedisLockType.PUB_SUB_LOCK): then they also see that our programs have left by
// polling, at the latest when the lease ends.
func Spring(registry string) Format {
	return Strings(func(name string) string { return registry + ":" + name })
}

// ShedLock is the format of ShedLock's RedisLockProvider: a string under "job-lock:ENVIRONMENT:NAME".
func ShedLock(environment string) Format {
	return Strings(func(name string) string { return "job-lock:" + environment + ":" + name })
}

// Redisson is the format of Redisson's RLock: a hash under the lock's name with one field for its holder,
// "UUID:THREAD", and a channel on which the waiters hear that it was given back.
func Redisson() Format {
	return Format{form: hashForm, channel: redissonChannel}
}

// redissonChannel is RedissonObject.prefixName: a key that has a tag in braces goes without braces of its own.
func redissonChannel(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock__channel:" + key
	}
	return "redisson_lock__channel:{" + key + "}"
}

// form is how a lock is written. Each of its scripts has the other library's key, and these arguments: the ID of the
// hold, milliseconds, the channel of that library's waiters, the key of our lock, and the hold's token. It returns
// words, and may be run again: it then finds what it has done.
//
// Where the other library has its random value, we write "KEY:TOKEN:ID", with the key of our lock. Whoever takes the
// other key has our lock. So a smaller token of the same lock belongs to a hold that has ended, whatever became of its
// client, and is replaced. A larger one says that this request is late. Another lock belongs to a program with another
// prefix, which is a stranger like the other library.
type form struct {
	// take answers "taken"; "held" and who holds it; or "wrong" and what the key is instead.
	take *conn.Script
	// keep extends the lock to that time from now, unless it lasts longer already: "kept", or "gone".
	keep *conn.Script
	// give gives the lock back, or with a positive number makes it last for that long from now: "given", or "gone".
	give *conn.Script
	// free gives the lock back if its token is not larger than that of a hold of the same lock which was broken:
	// "given", or "gone".
	free *conn.Script
}

var (
	stringForm = newForm("string", `redis.call('GET', KEYS[1])`,
		`redis.call('SET', KEYS[1], ours, 'PX', ARGV[2])`, ``)
	hashForm = newForm("hash", `redis.call('HKEYS', KEYS[1])[1]`,
		`redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], ours, '1') redis.call('PEXPIRE', KEYS[1], ARGV[2])`,
		`redis.call('PUBLISH', ARGV[3], '0')`)
)

// newForm makes the scripts for a type of key, from how its holder is read, how one is written, and what tells the
// waiters.
func newForm(kind, read, write, tell string) *form {
	begin := `
local type = redis.call('TYPE', KEYS[1]).ok
if type ~= 'none' and type ~= '` + kind + `' then return 'wrong ' .. type end
local is = type ~= 'none' and ` + read + ` or ''
local mine = string.sub(is, -#ARGV[1] - 1) == ':' .. ARGV[1]
-- A late copy of an earlier request must not end what somebody relies on, so it never shortens.
local function lengthen()
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
end
`
	return &form{
		take: conn.NewScript(begin + `
local lock, token = string.match(is, '^(.*):(%d+):[^:]*$')
if mine then
  lengthen()
elseif is == '' or lock == ARGV[4] and token < ARGV[5] then
  local ours = ARGV[4] .. ':' .. ARGV[5] .. ':' .. ARGV[1]
  ` + write + `
else
  return 'held ' .. is
end
return 'taken'`),
		keep: conn.NewScript(begin + `
if not mine then return 'gone' end
lengthen()
return 'kept'`),
		free: conn.NewScript(begin + `
local lock, token = string.match(is, '^(.*):(%d+):[^:]*$')
if lock ~= ARGV[4] or token > ARGV[5] then return 'gone' end
redis.call('DEL', KEYS[1])
` + tell + `
return 'given'`),
		give: conn.NewScript(begin + `
if not mine then return 'gone' end
if ARGV[2] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  redis.call('DEL', KEYS[1])
  ` + tell + `
end
return 'given'`),
	}
}

// keyOf returns the other library's key of a lock.
func (f Format) keyOf(name string) string {
	if f.key == nil {
		return name
	}
	return f.key(name)
}

// call makes the call of a script for a hold. Tokens have as many digits as the largest one, so that they compare as
// texts.
func (d *Driver) call(script *conn.Script, lock driver.Key, id string, millis int64, token uint64) *conn.Call {
	key, channel := d.theirs.keyOf(lock.Name), ""
	if d.theirs.channel != nil {
		channel = d.theirs.channel(key)
	}
	return &conn.Call{
		Script: script, Slot: conn.SlotOf(key), Keys: []string{key},
		Args: []string{id, fmt.Sprint(millis), channel, d.ours.KeyOf(lock), fmt.Sprintf("%020d", token)},
	}
}

// scripts returns those of the format's form.
func (f Format) scripts() *form {
	if f.form == nil {
		return stringForm
	}
	return f.form
}
