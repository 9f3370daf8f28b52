package rights

import (
	"fmt"
	"slices"
	"strings"
)

func sorted(commands string) []string {
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(commands))))
}

// Table is the table of rights in the documentation, in Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString("| package | commands | channels | optional |\n|---|---|---|---|\n")
	for _, s := range All() {
		channels := make([]string, len(s.Channels))
		for i, channel := range s.Channels {
			channels[i] = "PREFIX" + channel
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Package, coded(s.Commands), coded(channels), coded(s.Optional))
	}
	fmt.Fprintf(&b, "| any, on a cluster | %s | | |\n", coded(Cluster()))
	return b.String()
}

func coded(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.ReplaceAll(strings.Join(words, "` `"), "|", `\|`) + "`"
}
