// Package d16script is an exhibit, broken on purpose: a script that sells from a stock, which compares numbers as text,
// and one that stops halfway. Beside them are the scripts that are right.
package d16script

import (
	"context"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// The scripts. KEYS are the names that a script uses, ARGV everything else; both are text, and so is what GET returns.
const (
	// Primer returns what a script is given.
	Primer = `return {KEYS[1], ARGV[1]}`

	// AsText compares texts: "9" is more than "10", because 9 is more than 1.
	AsText = `if redis.call("get", KEYS[1]) >= ARGV[1] then ` +
		`return redis.call("decrby", KEYS[1], ARGV[1]) else return "sold out" end`

	// AsNumbers compares numbers.
	AsNumbers = `if tonumber(redis.call("get", KEYS[1])) >= tonumber(ARGV[1]) then ` +
		`return redis.call("decrby", KEYS[1], ARGV[1]) else return "sold out" end`

	// Halfway takes one off, and then writes down who bought in a key of another kind.
	Halfway = `redis.call("decr", KEYS[1]) return redis.call("lpush", KEYS[2], ARGV[1])`

	// CheckFirst finds out what can fail before it changes anything.
	CheckFirst = `local kind = redis.call("type", KEYS[2]).ok ` +
		`if kind ~= "list" and kind ~= "none" then return "orders is a " .. kind end ` +
		Halfway
)

// Stock is the number of pieces in a key, and the list of who bought in another.
type Stock struct {
	Conn          exhibit.Conn
	Pieces, Names string
}

// Sell takes n off by one of the scripts, if the script finds that there are as many.
func (s *Stock) Sell(ctx context.Context, script, n string) (any, error) {
	return s.Conn.Do(ctx, "EVAL", script, "1", s.Pieces, n)
}

// Order takes one off for a buyer, and writes the name down.
func (s *Stock) Order(ctx context.Context, script, buyer string) (any, error) {
	return s.Conn.Do(ctx, "EVAL", script, "2", s.Pieces, s.Names, buyer)
}
