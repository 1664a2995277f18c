package d07counter

import "github.com/interlock-go/interlock/lab/exhibit"

// Printed are the quotes of this exhibit: what the re-entry passes to EXPIRE. The value of the key is the lab's, so
// that a story can tell whose key it is; the exhibit never reads it.
var Printed = []exhibit.Quote{
	{Article: "the article on a counter for each thread", Code: `5000`},
}
