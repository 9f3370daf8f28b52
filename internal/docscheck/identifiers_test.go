package main

import "testing"

func TestIdentifiersThatOnlyTestsHaveAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"```go\nredis.Options{Addr: metrics.SharedAddr()}\n```":   "README.md:2: only tests have metrics.SharedAddr",
		"Call `metrics.SharedAddr`.":                              "README.md:1: only tests have metrics.SharedAddr",
		"`metrics.New`, `metrics.Config`, `metrics.Two`, `x.Any`": "",
		"```go\nrdb := newClient()\n```":                          "README.md:2: only tests have newClient",
		"`newClient` makes one.\n```go\nx(newClient())\n```":      "",
		"```go\nx.newClient(make(chan int))\n```":                 "",
		"`other.SharedAddr`":                                      "",
	} {
		t.Run(text, func(t *testing.T) {
			expect(t, checkIdentifiers, files(map[string]string{
				"README.md": text, "metrics/metrics.go": "package metrics\n\nfunc New() {}\n\ntype Config struct{}\n\nconst (\n\tOne = 1\n\tTwo = 2\n)\n",
				"metrics/main_test.go": "package metrics\n\nfunc SharedAddr() string { return \"\" }\n\nfunc New() {}\n\nfunc newClient() {}\n",
			}), want)
		})
	}
}
