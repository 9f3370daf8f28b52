package report

import (
	"fmt"
	"html"
	"strings"
)

// picture is an SVG that is being drawn. It brings its own ground, so that it can be read on any page.
type picture struct {
	strings.Builder
	width, height float64
}

// The colours: ours stands out, and everybody can tell it from grey. A reader whose screen is dark gets the dark ones.
const style = `<style>
.ground{fill:#fafafa}.ink{fill:#222}.soft{fill:#667}.grid{stroke:#ddd}.ours{fill:#0072b2}.other{fill:#b4bac2}
text{font-family:Arial,Helvetica,'Liberation Sans',sans-serif;font-size:12px}
.first{stroke:#0072b2;fill:#0072b2}.second{stroke:#d55e00;fill:#d55e00}.third{stroke:#8a929b;fill:#8a929b}.line{fill:none;stroke-width:1.4}
.title{font-size:15px;font-weight:bold}.head{font-weight:bold}.small{font-size:11px}
@media (prefers-color-scheme:dark){
.ground{fill:#161b22}.ink{fill:#e6edf3}.soft{fill:#9aa4b0}.grid{stroke:#343b45}.ours{fill:#56b4e9}.other{fill:#687280}
.first{stroke:#56b4e9;fill:#56b4e9}.second{stroke:#f0883e;fill:#f0883e}.line{fill:none}}
</style>
`

type anchor string

const (
	left   anchor = "start"
	middle anchor = "middle"
	right  anchor = "end"
)

func (p *picture) text(x, y float64, class string, at anchor, s string) {
	fmt.Fprintf(&p.Builder, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, at, html.EscapeString(s))
}

func (p *picture) bar(x, y, width, height float64, class string) {
	fmt.Fprintf(&p.Builder, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/>`+"\n", x, y, width, height, class)
}

func (p *picture) line(x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.Builder, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="grid"/>`+"\n", x1, y1, x2, y2)
}

// svg is the whole file. Its title is what is read aloud.
func (p *picture) svg(title string) []byte {
	var whole strings.Builder
	fmt.Fprintf(&whole, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n",
		p.width, p.height, p.width, p.height)
	fmt.Fprintf(&whole, "<title>%s</title>\n%s", html.EscapeString(title), style)
	fmt.Fprintf(&whole, `<rect width="%.0f" height="%.0f" rx="6" class="ground"/>`+"\n", p.width, p.height)
	whole.WriteString(p.String())
	whole.WriteString("</svg>\n")
	return []byte(whole.String())
}
