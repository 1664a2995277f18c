package d04getdel

import "github.com/interlock-go/interlock/lab/exhibit"

// What the articles print.
const (
	misplaced = `redis.call("get",KEYS[1]==ARGV[1])`
	quoted    = `redis.call("del","KEYS1")`
	misspelt  = `KEY[1]`
)

// Printed are the quotes of this exhibit.
var Printed = []exhibit.Quote{
	{Article: "the first article", Code: misplaced},
	{Article: "the first article", Code: quoted},
	{Article: "the third article", Code: misspelt},
}

// The scripts. The calls of the first article are complete. Of the third one only the array's name is its own.
const (
	// Misplaced closes the parenthesis of GET after the comparison, so GET gets true or false as its key.
	Misplaced = `if ` + misplaced + ` then return ` + quoted + ` else return 0 end`

	// Quoted is the second call of Misplaced by itself: in quotation marks KEYS1 is the name of another key.
	Quoted = `return ` + quoted

	// Misspelt uses KEY, which Redis does not define; the array is KEYS.
	Misspelt = `if redis.call("get",` + misspelt + `) == ARGV[1] then return redis.call("del",` + misspelt +
		`) else return 0 end`
)
