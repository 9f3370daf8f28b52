package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

//go:embed static
var static embed.FS

// handler serves the page, its updates, and its actions.
func handler(l *lab) http.Handler {
	files, _ := fs.Sub(static, "static") // the name is valid
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /events", l.stream)
	act := func(pattern string, do func(*http.Request) error) {
		mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) {
			r = r.WithContext(context.WithoutCancel(r.Context())) // an action is not left half done
			if err := do(r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	act("/settings", func(r *http.Request) error {
		var s settings
		if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 4<<10)).Decode(&s); err != nil {
			return fmt.Errorf("settings: %w", err)
		}
		return l.change(r.Context(), s)
	})
	act("/expire", func(r *http.Request) error { return l.expire(r.Context()) })
	act("/write", func(*http.Request) error { l.write(); return nil })
	act("/write-past", func(*http.Request) error { l.writePast(); return nil })
	act("/write-late", func(*http.Request) error { l.writeLate(); return nil })
	act("/redis/{flow}", func(r *http.Request) error {
		f := flow(r.PathValue("flow"))
		if !slices.Contains([]flow{up, frozen, down}, f) {
			return fmt.Errorf("redis: %q is none of up, frozen, down", f)
		}
		return l.setRedis(r.Context(), f)
	})
	act("/instances/{number}/{do}", func(r *http.Request) error {
		i, err := strconv.Atoi(r.PathValue("number"))
		do := r.PathValue("do")
		if err != nil || i < 0 || i >= instances || do != "kill" && do != "start" {
			return errors.New("instances: there is no such instance or action")
		}
		return l.setInstance(i, do == "start")
	})
	return onlyHere(http.NewCrossOriginProtection().Handler(mux)) // which refuses actions that other sites send
}

// onlyHere refuses requests under a name that somebody else has lead to this machine, and forbids pages to load what is not
// from here.
func onlyHere(next http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this page is for this machine only", http.StatusMisdirectedRequest)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// stream sends a page the state four times a second, as Server-Sent Events.
func (l *lab) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		encoded, err := json.Marshal(l.state(r.Context(), time.Now()))
		if err == nil {
			_, err = fmt.Fprintf(w, "data: %s\n\n", encoded)
		}
		if err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}
