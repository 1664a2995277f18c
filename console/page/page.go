// Package page has the files of the console's page, and nothing else.
package page

import "embed"

// Files has the page's files in the folder "static".
//
//go:embed static
var Files embed.FS
