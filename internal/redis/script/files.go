package script

import (
	"embed"
	"strings"
)

// Compile makes a Script of the Text of these files.
func Compile(files embed.FS, names ...string) *Script { return New(Text(files, names...)) }

// Text is the text of these files of a package's folder lua, one after the other. A package asks for it when the
// program begins. It panics if there is no such file.
func Text(files embed.FS, names ...string) string {
	var text strings.Builder
	for _, name := range names {
		source, err := files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		text.Write(source)
	}
	return text.String()
}
