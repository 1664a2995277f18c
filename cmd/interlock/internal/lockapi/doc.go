// Package lockapi serves mutexes over HTTP to programs in any language: "interlock serve http".
//
// The server holds each lock on behalf of a client and never renews it by itself. A client that stops renewing loses
// its lease at the deadline, as a program that uses the library would. openapi.json describes every request and
// response; docs/serve.md explains them.
package lockapi
