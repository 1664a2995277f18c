// Package terraformlock keeps the states of Terraform and OpenTofu behind a lock: it is a server for their HTTP
// backend.
//
//	files, err := interlock.Open(ctx, "file:///var/lib/terraform/.gates", nil)
//	// ...
//	states, err := terraformlock.New(locks, files, "/var/lib/terraform", &terraformlock.Options{Tokens: tokens})
//	// ...
//	mux.Handle("/state/", http.StripPrefix("/state/", states))
//
// A configuration uses it so:
//
//	terraform {
//	  backend "http" {
//	    address        = "https://states.example.com/state/network"
//	    lock_address   = "https://states.example.com/state/network"
//	    unlock_address = "https://states.example.com/state/network"
//	  }
//	}
//
// "interlock serve terraform" is this server as a command.
//
// # Guarantees
//
// While a run holds a state's lock, nobody else gets it, from whichever server: the lock is one of interlock, named
// "terraform/STATE", and the server renews it for the run, which cannot. A state is written only by the holder of the
// lock, and behind a fence: a server that stood still, and whose lock went to another meanwhile, is refused. A write is
// whole or not there, also after a crash, and the state before it stays beside it as STATE.backup.
//
// # What it cannot do
//
// A run that was killed says nothing, so its lock stays until somebody runs "terraform force-unlock", or for
// [Options].MaxHold. When the server ends, its locks end with their lease, and runs that go on cannot write:
// Terraform then leaves the state in errored.tfstate. A lock is given back at the server that took it. Several
// servers need one folder, on a file system whose flock(2) all of them see, and a balancer that sends one state's
// requests to one server.
//
// # Who may use it
//
// A state has secrets in it, and whoever may write it decides what the next run destroys. So a Backend has a guard of
// package webguard: with Options.Tokens each request needs one, and without them only programs of this machine are let
// in, and no page that is open in a browser.
//
// "terraform force-unlock ID" frees the lock of a state whatever the ID is: it sends none. Whoever may use the server
// may free a lock that is in use; the run that had it can write no more. Each such unlock is in the log, with who
// asked, the state, and ID and age of the lock.
//
// The protocol is that of https://developer.hashicorp.com/terraform/language/backend/http.
package terraformlock
