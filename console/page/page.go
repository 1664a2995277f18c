// Package page has the files of the console's page, and nothing else: an HTML shell, a style sheet, JavaScript modules
// that browsers load as they are, and the words of the page in each language. There is no build step.
package page

import "embed"

// Files has the page's files in the folder "static". Its index.html names the others by relative addresses, so it can
// be served below any path.
//
//go:embed static
var Files embed.FS
