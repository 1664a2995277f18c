package exhibit

// Quote is code as an article prints it, to the letter and with its mistakes. An exhibit has its quotes beside its code
// in a list named Printed; a test runs the exhibit and finds each of them in what it sends. The articles' whole
// listings are not repeated here: what stands around a quote is the lab's.
type Quote struct {
	Article string // as docs/lab.md calls it
	Code    string
}
