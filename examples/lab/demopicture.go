package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// drawn is an SVG of the lines, as a terminal in light or dark shows them.
func drawn(lines []string) []byte {
	const width, top, height = 900, 30, 18
	var b bytes.Buffer
	h := top + len(lines)*height
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img">
<title>What go run ./examples/lab -demo says: each thing that is done to two processes, Redis and a database, and what is seen</title>
<style>
.ground{fill:#fafafa}.said{fill:#222;font-weight:bold}.seen{fill:#0b6b3a}.bad{fill:#b3471f}.frame{fill:#667}
text{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:12.5px;white-space:pre}
@media (prefers-color-scheme:dark){.ground{fill:#161b22}.said{fill:#e6edf3}.seen{fill:#6fd39a}.bad{fill:#e8926b}.frame{fill:#9aa4b0}}
</style>
<rect width="%[1]d" height="%[2]d" rx="6" class="ground"/>
`, width, h)
	for i, line := range lines {
		class := "frame"
		switch {
		case strings.HasPrefix(line, "   →") && strings.Contains(lines[i-1], "A mistake"):
			class = "bad"
		case strings.HasPrefix(line, "   →"):
			class = "seen"
		case len(line) > 1 && line[1] == '.':
			class = "said"
		case line == "":
			continue
		}
		fmt.Fprintf(&b, "<text x=\"16\" y=\"%d\" class=\"%s\">%s</text>\n", top+i*height, class, html.EscapeString(line))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
