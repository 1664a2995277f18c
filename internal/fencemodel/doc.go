// Package fencemodel is an exhaustive model of a lock and of a resource with a fence (package fence). Its tests visit
// every state that the model can reach and show two things: with all rules no state is at fault, and without any one of
// them some state is. Nothing in the product imports this package. The search is that of internal/handoff.
//
// # What is modelled
//
// One lock, which readers, an upgradeable reader or one writer hold, and one resource, which is a number and the two
// marks. Up to three acquisitions follow each other. At any moment
//
//   - a lease ends, of which its holder learns nothing: it may have been paused, cut off, or slow. It goes on for as
//     long as it likes, also when others hold the lock and have long been done.
//   - a holder reads the number, as often as it likes.
//   - a holder sends a write of one more than it has read, or of one more than there is without having read (a blind
//     write), which arrives at any later moment or never, also after its holder was downgraded or has read again.
//   - the upgradeable reader is upgraded, which mints a token; a writer is downgraded, which keeps its own.
//
// In a second model the engine may forget at any moment who holds, and start again with a smaller token. There are no
// blind writes in it, a holder that was upgraded reads again, and what is promised is less. (Without reading again an
// update could be lost: the holder reads with token 1 and is upgraded to 3; the engine forgets and grants 2, whose
// write is newer than the read; then the write with 3 comes, computed from what was read with 1.)
//
// # What is not modelled
//
// Several writes of one holder under way at once: a fence does not put them in order. More than one resource, which
// have nothing to do with each other. Marks that are lost.
//
// # What counts as a fault
//
//   - A lost update: a write is accepted that was computed from a number which has changed since.
//   - An unstable read: a holder reads twice, both are accepted, and somebody else has written in between.
//   - A stale effect: a write is accepted of a holder that is older than one which has touched the resource, or a read
//     of one that is older than a writer which has. (Not if tokens go back: "older" means nothing then.)
//   - A wrong refusal: somebody is refused whom the engine still counts as the holder. (Not if tokens go back.)
//
// To read the counter-examples run go test -v -run Without ./internal/fencemodel.
package fencemodel
