package main

import "testing"

const little = "300 * time." + "Millisecond" // apart, as this file is checked, too

func TestHastyTestsSayWhyTheyMay(t *testing.T) {
	for text, want := range map[string]string{
		"cfg := Config{RedisTimeout: " + little + "}":             "a_test.go:1: a busy machine",
		"cfg.RedisTimeout = " + little:                            "a_test.go:1: a busy machine",
		"cfg := Config{LeaseTTL: " + little + "} // it is to end": "",
		"cfg := Config{RedisTimeout: redistest.Patience}":         "",
		"cfg := Config{TTL: " + little + "}":                      "",
	} {
		t.Run(text, func(t *testing.T) {
			expect(t, checkPatience, files(map[string]string{"a_test.go": text, "proof/a_test.go": text, "x/config_test.go": text, "a.go": text}), want)
		})
	}
}
