// Package conn is what package redislock and the client libraries below it have in common: what the driver wants of a
// client ([Conn]), what it asks ([Call], [Script]) and is answered ([Reply], [RefusedError]), what it is told unasked
// ([Handler], [Link]), where a key is in a Cluster ([SlotOf]), and what a transport does when a call fails: what the
// error means ([Library.Judge]), whether to go on and how ([Try]), for one call or many ([RunBatch]).
//
// Nothing here knows of locks. It is for those who write a Conn for another library, as package goredislock is one for
// go-redis; programs that only use locks need package redislock.
package conn
