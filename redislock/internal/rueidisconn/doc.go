// Package rueidisconn makes a [conn.Conn] of a rueidis client. The client knows the servers: who is the primary, and
// which node of a Cluster has which slot. The calls go over links, one connection to each server that pushes come over
// too: a connection of the client, or, if the Conn was opened by itself, one of package resp.
//
// A node has a keeper, which makes a link whenever there is none. What a server's refusals mean, and how often a call
// is tried again, is in package conn.
package rueidisconn
