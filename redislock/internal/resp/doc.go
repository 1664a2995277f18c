// Package resp is a client for one connection to a Redis server that speaks RESP3. It knows nothing of locks.
//
// It is written for calls that wait for each other and for pushes: over one connection that many goroutines use,
// answers and pushes keep their order, a call that is alone costs no change of goroutines, and what many ask at once
// goes out in one write, and in one run of a script where [conn.Bundle] says how. It does not reconnect and does not
// know of other servers; package rueidisconn does that.
package resp
