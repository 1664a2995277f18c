// Package svg has the colours of the pictures in the documents, in one place: each picture follows the reader's light
// or dark page. A program that draws one begins with Begin and uses the classes of the style sheet, not colours.
package svg

import "fmt"

// style has each class twice, for light pages and for dark ones.
//
//   - bg, ink, faint: the background, text, and text of scales and legends
//   - grid, mark, limit: lines
//   - line, with blue, orange or red: a curve
//   - fblue, forange, fred, fgreen, fpending: the fill of a box or of a text
const style = `<style>
.bg{fill:#fff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d8dee4}.mark{stroke:#818b98}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.limit{stroke:#c0392b}
.blue{stroke:#2471a3}.orange{stroke:#a65c00}.red{stroke:#c0392b}
.fblue{fill:#2471a3}.forange{fill:#a65c00}.fred{fill:#c0392b}.fgreen{fill:#1f7a3a}
.fpending{fill:#f5d9a8;stroke:#a65c00}
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}.grid{stroke:#30363d}.mark{stroke:#6e7681}
.limit{stroke:#ff7b72}.blue{stroke:#6cb6ff}.orange{stroke:#e3a04a}.red{stroke:#ff7b72}
.fblue{fill:#6cb6ff}.forange{fill:#e3a04a}.fred{fill:#ff7b72}.fgreen{fill:#57ab5a}
.fpending{fill:#4d3a1a;stroke:#e3a04a}}
</style>
`

// Begin returns the first lines of a picture: its size in pixels, the title that a screen reader reads, the style sheet
// and the background. The picture shrinks on a narrow screen. The caller adds the shapes and </svg>.
func Begin(title string, width, height, fontSize int) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`font-family="sans-serif" font-size="%d">`+"\n<title>%s</title>\n%s"+
		`<rect class="bg" width="%d" height="%d"/>`+"\n",
		width, height, width, height, fontSize, title, style, width, height)
}
