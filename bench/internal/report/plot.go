package report

import (
	"bytes"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plots are drawn on a plate of their own, so that they can be read on light and on dark pages.
var (
	plate = color.Gray{Y: 0xfa}
	grid  = color.Gray{Y: 0xdd}
	ink   = color.Gray{Y: 0x22}

	// Okabe and Ito's colours, which the colour-blind can tell apart.
	colours = []color.Color{
		color.RGBA{0x00, 0x72, 0xb2, 0xff}, color.RGBA{0xd5, 0x5e, 0x00, 0xff}, color.RGBA{0x00, 0x9e, 0x73, 0xff},
		color.RGBA{0xcc, 0x79, 0xa7, 0xff}, color.RGBA{0xe6, 0x9f, 0x00, 0xff}, color.RGBA{0x56, 0xb4, 0xe9, 0xff},
	}
	shapes = []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{},
	}
)

// wider follows names, since the reader's font may be wider than the one that gonum measures with.
const wider = "    "

// series is one kind of point of a plot.
type series struct {
	name   string
	points plotter.XYs
}

// newPlot is an empty plot with the axis of its figures, which is logarithmic.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = plate
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = 14
	p.Title.Padding = 6
	p.Legend.Top = true
	p.Legend.TextStyle.Font.Size = 11
	p.Legend.Padding = 3
	sans(&p.Title.TextStyle, &p.Legend.TextStyle)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		sans(&axis.Label.TextStyle, &axis.Tick.Label)
		axis.Color, axis.Tick.Color = ink, ink
		axis.Label.TextStyle.Font.Size = 12
		axis.Tick.Label.Font.Size = 11
	}
	return p
}

func sans(styles ...*draw.TextStyle) {
	for _, style := range styles {
		style.Font.Variant = "Sans"
	}
}

// logAxis has whole decades around the figures, and names them.
func logAxis(axis *plot.Axis, label string, all []series, of func(plotter.XY) float64) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range all {
		for _, xy := range s.points {
			least, most = min(least, of(xy)), max(most, of(xy))
		}
	}
	axis.Scale = plot.LogScale{}
	axis.Min = math.Pow(10, math.Floor(math.Log10(least)))
	axis.Max = math.Pow(10, math.Ceil(math.Log10(most*1.05)))
	axis.Label.Text = label
	axis.Tick.Marker = plot.TickerFunc(decades)
}

func decades(least, most float64) (ticks []plot.Tick) {
	for x := least; x <= most*1.001; x *= 10 {
		ticks = append(ticks, plot.Tick{Value: x, Label: short(x)})
		for minor := 2.0; minor < 10 && minor*x < most; minor++ {
			ticks = append(ticks, plot.Tick{Value: minor * x})
		}
	}
	return ticks
}

// short is a number as labels have it.
func short(x float64) string {
	switch {
	case x >= 1e6:
		return strconv.FormatFloat(x/1e6, 'g', 3, 64) + " M"
	case x >= 1e3:
		return strconv.FormatFloat(x/1e3, 'g', 3, 64) + " k"
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// dots adds the series to the plot, one row for each name from top to bottom, with each figure beside its point.
func dots(p *plot.Plot, label string, rows []string, all []series) error {
	logAxis(&p.X, label, all, func(xy plotter.XY) float64 { return xy.X })
	p.Y.Min, p.Y.Max = -0.6, float64(len(rows))+0.6 // with room for the legend
	p.Y.Tick.Marker = plot.TickerFunc(func(float64, float64) (ticks []plot.Tick) {
		for i, name := range rows {
			ticks = append(ticks, plot.Tick{Value: float64(len(rows) - 1 - i), Label: name + wider})
		}
		return ticks
	})
	p.Y.Tick.Length, p.Y.LineStyle.Width = 0, 0
	lines := plotter.NewGrid()
	lines.Vertical.Color, lines.Horizontal.Color = grid, grid
	p.Add(lines)
	for i, s := range all {
		points, err := plotter.NewScatter(s.points)
		if err != nil {
			return err
		}
		points.GlyphStyle = draw.GlyphStyle{Color: colours[i], Shape: shapes[i], Radius: 4}
		p.Add(points)
		p.Legend.Add(s.name+wider, points)
		if err := beside(p, s, i, len(all)); err != nil {
			return err
		}
	}
	return nil
}

// beside writes the figures of a series next to its points: above them, or below them for every other series.
func beside(p *plot.Plot, s series, i, n int) error {
	texts := make([]string, len(s.points))
	for j, xy := range s.points {
		texts[j] = short(rounded(xy.X))
	}
	labels, err := plotter.NewLabels(plotter.XYLabels{XYs: s.points, Labels: texts})
	if err != nil {
		return err
	}
	for j := range labels.TextStyle {
		sans(&labels.TextStyle[j])
		labels.TextStyle[j].Font.Size = 9
		labels.TextStyle[j].Color = colours[i]
		labels.TextStyle[j].XAlign = draw.XCenter
	}
	labels.Offset = vg.Point{Y: 6}
	if n > 1 && i%2 == 1 {
		labels.Offset = vg.Point{Y: -13}
	}
	p.Add(labels)
	return nil
}

func rounded(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(x)))-1)
	return math.Round(x/unit) * unit
}

// lines adds the series to the plot, each a line.
func lines(p *plot.Plot, x, y string, all []series) error {
	logAxis(&p.Y, y, all, func(xy plotter.XY) float64 { return xy.Y })
	p.X.Label.Text = x
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = grid, grid
	p.Add(g)
	for i, s := range all {
		line, points, err := plotter.NewLinePoints(s.points)
		if err != nil {
			return err
		}
		line.Color, line.Width = colours[i], 2
		points.GlyphStyle = draw.GlyphStyle{Color: colours[i], Shape: shapes[i], Radius: 4}
		p.Add(line, points)
		p.Legend.Add(s.name+wider, line, points)
	}
	return nil
}

// svg draws plots side by side.
func svg(width, height font.Length, plots ...*plot.Plot) ([]byte, error) {
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: 8, PadTop: 6, PadBottom: 6, PadLeft: 8, PadRight: 14}
	all := draw.New(canvas)
	all.SetColor(plate)
	all.Fill(all.Rectangle.Path())
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, all)[0] {
		plots[i].Draw(c)
	}
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	// whoever looks may not have the font that gonum measures with, but has one like it
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Arial,Helvetica,sans-serif")), err
}
