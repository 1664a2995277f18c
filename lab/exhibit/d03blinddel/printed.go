package d03blinddel

import "github.com/interlock-go/interlock/lab/exhibit"

// Printed are the quotes of this exhibit.
var Printed = []exhibit.Quote{
	{Article: "the articles on one Redis", Code: `SET key true NX EX`},
}
