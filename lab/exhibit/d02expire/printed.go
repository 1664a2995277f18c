package d02expire

import "github.com/interlock-go/interlock/lab/exhibit"

// Printed are the quotes of this exhibit.
var Printed = []exhibit.Quote{
	{Article: "the article on a marketplace", Code: `expire(key, 20000)`},
}
