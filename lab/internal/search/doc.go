// Package search finds by itself how an exhibit fails: it looks at every schedule of a few clients and a few faults,
// the shortest first, and has what it finds replayed on a real Redis.
//
// # What is searched
//
// Each client runs the exhibit's own code ([Program]): it takes the lock, writes to what the lock protects, and
// releases the lock. A schedule is a list of moves ([Move]). In most moves one client sends its next command and gets
// the answer; the others are faults. Clients begin in the order of their names, which loses nothing, because all run
// the same program. A client that the schedule does not choose stands still, so that a stop is no move of its own.
//
// Nothing is written down twice: the search knows of a client only what it has been told so far, and runs its program
// from the beginning, answering from that past, to learn what it sends next. Redis is a small model ([server]). A
// replay compares each answer of the real server with the model's.
//
// # What is looked for
//
// Two clients inside at once, with and without one that has overrun its lease; a lock that nobody opens any more,
// however long one waits; and a lock that stays closed although all have released it. See [Kind].
//
// # Courses
//
// A course is a fixed schedule of four clients, into which the audience puts faults (package breaking). Courses are
// played on a real Redis only, the sound lock's too.
//
// # What is not modelled
//
// A client that repeats a command whose answer was lost, servers that forget, and clients that renew: no exhibit here
// does. Time passes in steps that are longer than a lease.
package search
