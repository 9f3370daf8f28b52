package report

import (
	"encoding/xml"
	"math"
	"strconv"
	"strings"
	"testing"
)

// drawn is what a reader sees of Lines: its texts, and the lines' points by look.
type drawn struct {
	texts  []string
	points map[Look][][2]float64
}

func look(t *testing.T, lines Lines) drawn {
	t.Helper()
	var svg struct {
		Texts []string `xml:"text"`
		Lines []struct {
			Points string `xml:"points,attr"`
			Class  string `xml:"class,attr"`
		} `xml:"polyline"`
	}
	if err := xml.Unmarshal(lines.SVG(), &svg); err != nil {
		t.Fatal(err)
	}
	d := drawn{texts: svg.Texts, points: make(map[Look][][2]float64)}
	for _, line := range svg.Lines {
		of := Look(strings.TrimPrefix(line.Class, "line "))
		for point := range strings.FieldsSeq(line.Points) {
			x, y, _ := strings.Cut(point, ",")
			d.points[of] = append(d.points[of], [2]float64{number(t, x), number(t, y)})
		}
	}
	return d
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		t.Fatalf("%q is no place in a picture", s)
	}
	return x
}

func at(a, b float64) bool { return math.Abs(a-b) < 0.15 } // places have one decimal

func TestLinesStandAtTheirFiguresOnOneAxis(t *testing.T) {
	t.Parallel()
	d := look(t, Lines{Title: "a day", Hours: 24, Panels: []LinePanel{{Title: "loads", Lines: []Line{
		{Name: "ours", Look: OfOurs, Figures: []float64{0, 50, 100}}, {Name: "theirs", Look: OfRival, Figures: []float64{200, 100, 0}},
	}}}})
	ours, theirs := d.points[OfOurs], d.points[OfRival]
	if len(ours) != 3 || len(theirs) != 3 {
		t.Fatalf("%d and %d points, want one for each figure", len(ours), len(theirs))
	}
	if zero := ours[0][1]; !at(zero, lineTop+panelHigh) || !at(theirs[2][1], zero) {
		t.Errorf("0 stands at %v and %v, want the bottom of the panel", zero, theirs[2][1])
	}
	if up := ours[0][1] - ours[2][1]; !at(ours[2][1], theirs[1][1]) || !at(2*up, theirs[2][1]-theirs[0][1]) || !at(up, 2*(ours[0][1]-ours[1][1])) {
		t.Errorf("ours %v, theirs %v: heights are not as the figures", ours, theirs)
	}
	if theirs[0][1] < lineTop {
		t.Errorf("the most stands at %v, above the panel", theirs[0][1])
	}
	if step := ours[1][0] - ours[0][0]; step <= 0 || !at(ours[2][0]-ours[1][0], step) {
		t.Errorf("figures are not at equal distances: %v", ours)
	}
}

func TestOnALogarithmicAxisATenfoldIsOneStep(t *testing.T) {
	t.Parallel()
	points := look(t, Lines{Hours: 24, Panels: []LinePanel{{Log: true, Lines: []Line{{Look: OfOurs, Figures: []float64{1, 10, 100, 0}}}}}}).points[OfOurs]
	if step := points[0][1] - points[1][1]; step <= 0 || !at(points[1][1]-points[2][1], step) {
		t.Errorf("1, 10 and 100 stand at %v", points)
	}
	if !at(points[3][1], lineTop+panelHigh) {
		t.Errorf("0 stands at %v, want the bottom: there is no logarithm of it", points[3][1])
	}
}

func TestFiguresThatAreAllZeroAreDrawnAtTheBottom(t *testing.T) {
	t.Parallel()
	for _, log := range []bool{false, true} {
		for _, point := range look(t, Lines{Hours: 24, Panels: []LinePanel{{Log: log, Lines: []Line{{Look: OfOurs, Figures: make([]float64, 3)}}}}}).points[OfOurs] {
			if !at(point[1], lineTop+panelHigh) {
				t.Errorf("logarithmic %t: 0 stands at %v", log, point[1])
			}
		}
	}
}

func TestLinesSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	d := look(t, Lines{
		Title: "A day <computed>", Hours: 24, Marks: []LineMark{{12, "failover"}},
		Panels: []LinePanel{{Title: "loads, %", Lines: []Line{{Name: "GET & SET", Look: OfRival, Figures: []float64{30_000}}}}},
	})
	for _, want := range []string{"A day <computed>", "failover", "loads, %", "GET & SET", "0:00", "12:00", "24:00", "20 k"} {
		found := false
		for _, text := range d.texts {
			found = found || text == want
		}
		if !found {
			t.Errorf("nothing says %q: %q", want, d.texts)
		}
	}
}
