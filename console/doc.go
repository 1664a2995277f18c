// Package console is a web page that shows the locks of one engine while they change: who holds them, who waits, who
// waits for whom, and what has happened. The command "interlock console" serves it; a program can mount it beside its
// own handlers:
//
//	client, err := interlock.New(d, nil) // a client of its own, so that an Observer can join it, see Console.Observer
//	page, err := console.New(client, &console.Options{Tokens: tokens, Hosts: []string{"ops.example.com"}})
//	defer page.Close()
//	mux.Handle("/locks/", http.StripPrefix("/locks", page))
//
// What a look costs and what a board cannot tell is in package board.
//
// # Security
//
// Whoever reaches the console sees the names of locks, owners and clients, and may break holds if Options.AllowBreak is
// set. Without Options.Tokens everybody may in who reaches it: serve it on a loopback address only, or behind something
// that lets in only whom it should.
//
// Package webguard says who is let in, and keeps pages of other sites out, in every handler of interlock. The page
// loads nothing from elsewhere, and a content security policy lets only its own scripts run.
package console
