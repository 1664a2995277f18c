package resp

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// A script that takes a key for a name if nobody has it (G), or says who has (Q), and one that gives it back (ok). The
// third runs both for several.
var (
	takeScript = conn.NewScript(`
		local has = redis.call('GET', KEYS[1])
		if has and has ~= ARGV[1] then return 'Q ' .. has end
		redis.call('SET', KEYS[1], ARGV[1])
		return 'G ' .. ARGV[1]`)
	giveScript = conn.NewScript(`
		if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
		redis.call('DEL', KEYS[1])
		return 'ok'`)
	bothScript = conn.NewScript(`
		local answers, key, arg = {}, 1, 2
		for i = 1, #ARGV[1] do
			local has = redis.pcall('GET', KEYS[key])
			if type(has) == 'table' then
				answers[i] = {err = has.err .. ' script: both, on @user_script'}
			elseif string.sub(ARGV[1], i, i) == 't' then
				if not has then redis.call('SET', KEYS[key], ARGV[arg]) end
				answers[i] = has and has ~= ARGV[arg] and 'Q ' .. has or 'G ' .. ARGV[arg]
			else
				if has == ARGV[arg] then redis.call('DEL', KEYS[key]) end
				answers[i] = has == ARGV[arg] and 'ok' or 'lost'
			end
			local takes = string.sub(ARGV[1], i, i) == 't'
			key, arg = key + 1, arg + (takes and 2 or 1)
		end
		return answers`)
	both = &conn.Bundle{Script: bothScript, Members: []conn.Member{
		{Letter: 't', Script: takeScript, Keys: 1, Args: 2}, {Letter: 'g', Script: giveScript, Keys: 1, Args: 1},
	}}
)

// bundled is a Conn whose calls go in bundles.
type bundled struct {
	*Conn
	t      *testing.T
	server *servers.RedisNode
}

func startBundled(t *testing.T, pushed func(kind, channel, message string)) *bundled {
	t.Helper()
	server := servers.RedisServer(t, nil)
	return &bundled{open(t, server.Addr(), &Options{Bundle: both}, pushed), t, server}
}

// wants is a call for a key.
func wants(key, who string) *conn.Call {
	return &conn.Call{Script: takeScript, Keys: []string{key}, Args: []string{who, "of no use"}}
}

// returns gives back what wants has got.
func returns(key, who string) *conn.Call {
	return &conn.Call{Script: giveScript, Keys: []string{key}, Args: []string{who}}
}

// together makes the calls before anything is sent, and returns what each is told: the text or the error.
func (b *bundled) together(calls ...*conn.Call) []string {
	b.t.Helper()
	got := make([]string, len(calls))
	ps := make([]*request, len(calls))
	b.mu.Lock()
	for i, c := range calls {
		ps[i] = b.bundle(b.gathered.kindOf(c, ByName), c)
	}
	b.mu.Unlock()
	var all sync.WaitGroup
	for i, p := range ps {
		all.Go(func() {
			b.mu.Lock()
			err := b.finish(b.t.Context(), p)
			if err == nil {
				err = p.err
			}
			if got[i] = p.text; err != nil {
				got[i] = err.Error()
			}
		})
	}
	all.Wait()
	return got
}

// runs is how many scripts the server has run.
func (b *bundled) runs() (n int) {
	b.t.Helper()
	info, err := b.Do(b.t.Context(), "INFO", "commandstats")
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.SplitSeq(fmt.Sprint(info), "\r\n") {
		var calls int
		for _, name := range []string{"eval", "evalsha"} {
			if _, err := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d,", &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}

// says fails unless each answer begins as it should.
func (b *bundled) says(got []string, want ...string) {
	b.t.Helper()
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			b.t.Errorf("request %d: got %q, want %q...", i, got[i], want[i])
		}
	}
}
