// Package webguard is the one door of every HTTP server of interlock: the console, "interlock serve http", "interlock
// serve terraform", and the handlers that programs mount. It decides who may reach a handler, before the handler sees
// the request:
//
//	guard, err := webguard.New(&webguard.Options{Tokens: tokens})
//	// ...
//	mux.Handle("/locks/", guard.Mount(handler))
//
// It refuses, in this order:
//
//   - a host name that may belong to somebody else. A name whose owner points it at this machine makes a browser take
//     this server for the owner's site (DNS rebinding), so that the owner's page can read the answers;
//   - a request that a browser marks as sent by a page of another site;
//   - a request without a token, if there are tokens.
//
// # Tokens
//
// A right token always passes, whatever others have guessed from the same address: a proxy, or a network behind NAT,
// gives all its visitors one address. The answer to a wrong token waits: an address gets one such answer a
// second, the first ten wait for their turn, and what comes beside them is refused at once (429).
// This slows honest mistakes and one patient guesser. It cannot slow guesses that are sent all at once, so the length
// of a token is what protects it: 16 random bytes cannot be guessed, a word of 16 letters can.
//
// # Servers
//
// A server takes a [Guarded] instead of an http.Handler: then a handler without a guard does not compile.
package webguard
