package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// problem is an error with its status.
type problem struct {
	status int
	err    error
}

func (p *problem) Error() string { return p.err.Error() }

func refuse(status int, format string, args ...any) *problem {
	return &problem{status, fmt.Errorf(format, args...)}
}

// ServeHTTP is part of http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	set := w.Header().Set
	set("Cache-Control", "no-store")
	set("X-Content-Type-Options", "nosniff")
	set("X-Frame-Options", "DENY")
	set("Referrer-Policy", "no-referrer")
	set("Cross-Origin-Resource-Policy", "same-origin")
	set("Cross-Origin-Opener-Policy", "same-origin")
	set("Content-Security-Policy", policy)
	err := h.expected(r)
	switch {
	case err != nil:
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		err = h.view(w, r)
	case r.Method == http.MethodPost && r.URL.Query().Get("do") == "catch-up":
		err = h.catchUp(w, r)
	case r.Method == http.MethodPost:
		err = h.act(w, r)
	default:
		set("Allow", "GET, HEAD, POST")
		err = refuse(http.StatusMethodNotAllowed, "method %q is not allowed", r.Method)
	}
	if err == nil {
		return
	}
	status := http.StatusBadGateway // Redis does not do what it should
	var p *problem
	if errors.As(err, &p) {
		status = p.status
	}
	answer(w, status, map[string]string{"error": err.Error()})
}

func (h *Handler) view(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	switch view := q.Get("view"); view {
	case "":
		return h.page(w, r)
	case "data":
		write(w, http.StatusOK, h.shown.encoded(h))
		return nil
	case "key":
		g, err := at(h.guards, q.Get("guard"))
		if err != nil {
			return err
		}
		return ask(w, h.busy, func() (any, error) { return g.lookUp(r.Context(), q.Get("key")) })
	case "lock":
		l, err := at(h.lockers, q.Get("locker"))
		if err != nil {
			return err
		}
		return ask(w, h.busy, func() (any, error) { return lookUp(r.Context(), l, q.Get("name")) })
	default:
		return refuse(http.StatusNotFound, "there is no view %q", cut(view))
	}
}

// ask answers with what Redis has to be asked for. Only a few do that at once: people who look must not disturb the service.
func ask(w http.ResponseWriter, slots chan struct{}, f func() (any, error)) error {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	default:
		return refuse(http.StatusServiceUnavailable, "%d others are asking, please try again", mostBusy)
	}
	found, err := f()
	if err == nil {
		answer(w, http.StatusOK, found)
	}
	return err
}

// at is what has the number in the list.
func at[T any](list []T, number string) (of T, err error) {
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(list) {
		return of, refuse(http.StatusNotFound, "there is no number %q", cut(number))
	}
	return list[i], nil
}

func answer(w http.ResponseWriter, status int, what any) {
	text, err := json.Marshal(what)
	if err != nil { // no type that is given here can fail
		status, text = http.StatusInternalServerError, []byte(`{"error":"it cannot be encoded"}`)
	}
	write(w, status, text)
}

func write(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that does not read it does not want it
}

// cut is what a person needs of a text that may be of any length.
func cut(s string) string {
	const enough = 64
	short, _ := shorten(s, enough)
	if len(short) < len(s) {
		return short + "…"
	}
	return short
}

// shorten returns a beginning of the text of at most so many bytes, as it can be shown, and whether it is not all of it: then it does not
// stand for the thing that it names.
func shorten(s string, most int) (short string, not bool) {
	short = strings.ToValidUTF8(s[:min(most, len(s))], "")
	return short, short != s
}
