package main

import "testing"

func TestFiguresAreThoseThatWereMeasured(t *testing.T) {
	const results = "# Results\n\n| | this | that |\n|---|---|---|\n| slowest answer, idle | 89 ms | by hand 1,622 ms |\n| hits a second | 90 k at 0.3 ms | 25 k |\n| hits, one key | 7 |  |\n"
	for text, want := range map[string]string{
		"| slowest | **89 ms** | 1,622 ms <!-- figure: slowest answer --> |":              "",
		"90 k, 0.3 ms away <!-- figure: hits a second -->, 89 <!-- figure: slowest --> 5": "",
		"88 ms <!-- figure: slowest answer -->":                                           "README.md:1: 88 is not in bench/RESULTS.md: | slowest answer, idle",
		"In 8 [of 9](x9.md)\n622 ms <!--figure: slowest answer-->":                        "README.md:2: 622 is not in",
		"1 ms <!-- figure: slowest answer -->":                                            "1 is not in", // it is a part of a number
		"90 k <!-- figure: slowest answer -->":                                            "90 is not in",
		"90 k <!-- figure: hits -->":                                                      `no row that begins with "hits", or several`,
		"90 k <!-- figure: misses -->":                                                    `no row that begins with "misses", or several`,
		"90 k <!-- figure: -->":                                                           `no row that begins with ""`,
		"```\n88 <!-- figure: slowest answer -->\n```":                                    "",
		"[89](docs/88.md) <!-- figure: slowest answer -->":                                "",
	} {
		t.Run(text, func(t *testing.T) {
			expect(t, checkFigures, files(map[string]string{"README.md": text, "bench/RESULTS.md": results}), want)
		})
	}
	expect(t, checkFigures, files(map[string]string{"README.md": "1 <!-- figure: any -->"}), "has no row")
}
