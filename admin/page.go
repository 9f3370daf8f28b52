package admin

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// policy lets the page run its own script and style, and ask this server. They are known by what they are.
var policy = "default-src 'none'; script-src '" + hash(pageJS) + "'; style-src '" + hash(pageCSS) + "'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// page writes the page, with the forms for what the request may do.
func (h *Handler) page(w http.ResponseWriter, r *http.Request) error {
	may := make(map[Action]bool)
	for _, action := range []Action{Invalidate, Bypass, Revoke} {
		may[action] = h.allow(r, action)
	}
	var out bytes.Buffer
	err := pageTemplate.Execute(&out, map[string]any{
		"CSS": template.CSS(pageCSS), "JS": template.JS(pageJS), "Token": h.token,
		"Invalidate": may[Invalidate], "Bypass": may[Bypass], "Revoke": may[Revoke], "Acts": may[Invalidate] || may[Bypass] || may[Revoke],
		"Guards": len(h.guards) > 0, "Lockers": len(h.lockers) > 0, "Pages": len(h.pages) > 0,
		"Feeds": len(h.feeds) > 0, "Reports": len(h.reports) > 0,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	_, _ = w.Write(out.Bytes()) // a client that does not read it does not want it
	return nil
}
