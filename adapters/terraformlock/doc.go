// Package terraformlock keeps the states of Terraform and OpenTofu behind a lock: it is a server for their HTTP
// backend.
//
//	files, err := interlock.Open(ctx, "file:///var/lib/terraform/.gates", nil)
//	// ...
//	states, err := terraformlock.New(locks, files, "/var/lib/terraform", nil)
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
// The protocol is that of https://developer.hashicorp.com/terraform/language/backend/http.
package terraformlock
