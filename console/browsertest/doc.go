// Package browsertest has no code of its own: its tests open the console's page in a real Chromium, over the real
// handler, and do what people do. They are a module of their own because they need a driver of browsers, which no user
// of the console should get.
//
// Chromium is found on PATH. Where it is missing the tests are skipped and say what to install, unless
// INTERLOCK_REQUIRE wants it ("chromium" or "all"). The pictures of docs/console.md are made by
//
//	go test -run Pictures . -screenshots
package browsertest
