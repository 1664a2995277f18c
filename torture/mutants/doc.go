// Package mutants tests the tests: it puts known bugs of lock libraries, one at a time, into a copy of interlock, and a
// named check of this repository must turn red. The same check must be green without the bug, in the same program.
//
// A mutant is a change of the text of a source file. All changes together are compiled into copies of the test programs
// that have the checks ("go build -overlay": no file of the clone is changed, and nothing of this is in what is
// released). Each change asks the variable [Variable] of the environment whether it is the one that counts, so one
// program is all mutants, and none if the variable is empty. A text that is not at exactly one place of its file fails
// the build of the mutants: who changes that code changes them with it.
package mutants
