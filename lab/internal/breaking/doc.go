// Package breaking is a page on which the audience breaks locks itself: it puts faults behind the steps of a course,
// the lab plays that on a real Redis, and the page shows what happened, with the player of package report. The
// command is "interlock lab serve".
//
// The page starts servers and processes, so that nobody but the person at this machine may reach it: it is served on a
// loopback address only, below a path that nobody can guess, and it refuses what other sites have a browser send. One
// course runs at a time, and each has an end.
package breaking
