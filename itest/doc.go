// Package itest holds tests that need more than one module, or a real SQL database, which the packages that they are
// about must not require: package fence, package locktx, and the adapters without a module of their own. Nothing
// imports it, and it is never released.
package itest
