package d12stock

import "github.com/interlock-go/interlock/lab/exhibit"

// Printed are the quotes of this exhibit. The exhibit sends the subtraction once as printed, and then as SQL has it.
var Printed = []exhibit.Quote{
	{Article: "the article on stock", Code: `number >= 0`},
	{Article: "the article on stock", Code: `number-=10`},
}
