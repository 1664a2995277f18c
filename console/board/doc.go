// Package board shows what one engine tells about its locks: who holds them, who waits, who waits for whom, and what
// has changed. It has no HTTP in it: package console serves its boards to browsers, and the command interlock to
// terminals.
//
// # Which function do I want?
//
// [Take] looks once. A [Poller] looks again and again, for any number of readers:
//
//	b := board.Take(ctx, client, nil) // one look
//
//	p := board.NewPoller(client, nil) // looks again and again while somebody reads
//	defer p.Close()
//	r := p.Reader(0)
//	defer r.Close()
//	for range r.Changed() {
//		update := r.Next()
//		// ...
//	}
//
// # What a look costs
//
// A look is one call of [interlock.Client.List]. A [Poller] looks once in each interval, however many read, and not at
// all while nobody does. After a slow look it pauses four times as long as the look took, after one that failed as
// long.
//
// # What a board cannot tell
//
// A board is what the engine told within one look, lock by lock; it is not a snapshot of all locks at one instant.
// Locks that were taken and given back between two looks are not seen. What an engine does not tell is said in [Knows]
// and never left blank without a reason. Goroutines that wait behind another of their own process are unknown to
// engines, and a lock that was passed on inside a process shows the owner of its last renewal. Latches and conditions
// have no holders and are not on the board.
package board
