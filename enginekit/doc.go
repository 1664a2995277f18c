// Package enginekit has what engines need besides package driver, and would otherwise write once each. It is for
// authors of engines; a program that uses locks needs nothing of it.
//
//   - [Tombstones] remembers requests that have ended, so that a late copy of one takes nothing.
//   - [Refusals] says when a session must end because its server refuses to take back what it has left.
//   - [OpenError] is the error of an engine that cannot be used: which servers, what is wrong, what to do about it.
//   - [Fine], [Warn] and [Fail] make the findings of a diagnosis, [Explained] orders them and says where to read on,
//     and [CheckPolicy] with [Report] says what New does with those of its start-up check.
//   - [Pause] and [CloseWithin] wait no longer than a context lasts.
//
// Package address, below it, reads hosts, ports and certificates from the URLs of servers. Package sqlsession is a
// whole engine but for its statements: for SQL servers whose locks belong to a session.
//
// # Compatibility
//
// The package is part of the root module and keeps its semantic version: within a major version nothing is removed and
// no promise is weakened. Engines are modules of their own, and a program may raise the version of the root module
// alone. So an engine imports of the root module only driver, fence and what is public here, never a package below
// internal; deps_test.go of the root module checks that.
//
// The package needs the standard library and package driver only, and starts no goroutine except in [CloseWithin].
package enginekit
