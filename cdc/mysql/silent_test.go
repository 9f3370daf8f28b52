package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/cacheguard/go/cacheguard"
	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
	"github.com/cacheguard/go/internal/testing/expect"
	"github.com/cacheguard/go/internal/testing/feedtest"
	"github.com/cacheguard/go/internal/testing/redistest"
)

// columnsOfAllTypes has, by name, a type and values of it, as SQL.
var columnsOfAllTypes = map[string]struct {
	is     string
	values []string
}{
	"tiny": {"tinyint", []string{"-128", "127", "0"}}, "utiny": {"tinyint unsigned", []string{"255"}}, "small": {"smallint unsigned", []string{"65535"}},
	"mid": {"mediumint unsigned", []string{"16777215"}}, "mids": {"mediumint", []string{"-8388608"}}, "int_": {"int", []string{"-2147483648"}},
	"uint": {"int unsigned", []string{"4294967295"}}, "big": {"bigint", []string{"-9223372036854775808"}}, "ubig": {"bigint unsigned", []string{"18446744073709551615"}},
	"dec_": {"decimal(12,3)", []string{"-0.5", "123456789.125", "0"}}, "exact": {"decimal(30,0)", []string{"123456789012345678901234567890"}},
	"year_": {"year", []string{"1901", "2155"}}, "time_": {"time(3)", []string{"'-838:59:59'", "'00:00:01.5'"}}, "time0": {"time", []string{"'100:00:00'"}},
	"char_": {"char(5) charset utf8mb4", []string{"'ab   '", "'ü'", "''"}}, "vc": {"varchar(300) charset utf8mb4", []string{"'a '", "'€😀'", "repeat('x', 300)"}},
	"latin":     {"varchar(300) charset latin1", []string{"convert(unhex('" + allBytes() + "') using latin1)", "'grüße €'"}},
	"latinchar": {"char(3) charset latin1", []string{"'ü'"}}, "latintext": {"text charset latin1", []string{"'ü€'"}},
	"utf3": {"varchar(10) charset utf8mb3", []string{"'ü€'"}}, "asc": {"varchar(10) charset ascii", []string{"'abc'"}}, "text_": {"mediumtext charset utf8mb4", []string{"'ü'"}},
	"json_": {"json", []string{`'{"a": 1}'`}},
	"bin":   {"binary(4)", []string{"x'01020000'", "x'00000000'", "x'ffffffff'"}}, "vbin": {"varbinary(10)", []string{"x'0100'", "''"}}, "blob_": {"blob", []string{"x'ff00'"}},
	"enum_": {"enum('s','grüße') charset utf8mb4", []string{"'s'", "'grüße'"}}, "enuml": {"enum('ü','ö') charset latin1", []string{"'ö'"}},
	"set_": {"set('a','b','ü') charset utf8mb4", []string{"'a,ü'", "''", "'a,b,ü'"}}, "setl": {"set('ü','b') charset latin1", []string{"'ü,b'"}},
	"uuid_": {"uuid", uuids()}, "inet": {"inet6", []string{"'::'", "'::1'", "'2001:db8::1'", "'::ffff:1.2.3.4'", "'::1.2.3.4'", "'1:0:0:2:0:0:0:3'", "'2001:db8:1::'", "'64:ff9b::1.2.3.4'", "'0:0:0:0:0:1:2:3'", "'2001:db8:0:1:1:1:1:1'", "'::ffff:0:1'", "'::0.1.0.0'", "'1:0:2:0:3:4:5:6'", "'0:1:0:2:3:4:5:6'", "'0:1:2:3:4:5:6:7'", "'1:2:3:4:5:6:7:0'", "'::1:0'"}},
	"inet_4": {"inet4", []string{"'1.2.3.0'", "'0.0.0.0'"}}, "real_": {"double", []string{"0.1", "-1e300"}},
	"date_": {"date", []string{"'2026-01-02'"}}, "datetime_": {"datetime(3)", []string{"'2026-01-02 03:04:05.000'"}}, "refused_utf16": {"varchar(10) charset utf16", []string{"'ü'"}}, "refused_float": {"float", []string{"0.1"}}, "refused_geo": {"point", []string{"point(1,2)"}},
	"refused_cp1250": {"enum('ü') charset cp1250", []string{"'ü'"}}, "refused_zero": {"decimal(6,2) zerofill", []string{"1.5"}}, "refused_year": {"year(2)", []string{"1999"}},
}

// allBytes are all but the zero and the space, as a varchar.
func allBytes() string {
	var all strings.Builder
	for b := 1; b < 256; b++ {
		if b != ' ' {
			fmt.Fprintf(&all, "%02x", b)
		}
	}
	return all.String()
}

// uuids has one of each version and variant.
func uuids() (all []string) {
	for version := range 16 {
		for _, variant := range "08c f" {
			if variant != ' ' && (version < 8 || variant != '0') { // the server refuses these
				all = append(all, fmt.Sprintf("'01234567-89ab-%xcde-%c123-456789abcdef'", version, variant))
			}
		}
	}
	return append(all, "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'01234567-89ab-7cde-8123-000000000000'")
}

// TestValuesAreWhatAQueryReturns compares each value that the feed has with the text that the service gets of it, or expects that it is refused by name.
func TestValuesAreWhatAQueryReturns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for name, c := range columnsOfAllTypes {
		t.Run(name, func(t *testing.T) {
			w.exec("CREATE TABLE t_" + name + " (id int AUTO_INCREMENT PRIMARY KEY, v " + c.is + ") CHARSET utf8mb4")
			var mu sync.Mutex
			got := make(map[int64]string)
			cfg := w.config(cdc.Table{Name: w.name + ".t_" + name, Changed: func(c cdc.Change) cacheguard.Changes {
				id, _ := c.New.Int64("id")
				v, err := c.New.Value("v") // the feed has it, too
				mu.Lock()
				defer mu.Unlock()
				if got[id] = shown(v); err != nil {
					got[id] = "refused: " + err.Error()
				}
				return cacheguard.Changes{}
			}})
			cfg.Name += name
			f, stop := w.run(cfg)
			defer stop()
			checked := f.SelfCheck(t.Context())
			w.CatchUp(f)
			for _, value := range c.values {
				w.exec("INSERT INTO t_" + name + " (v) VALUES (" + value + ")")
			}
			w.CatchUp(f)
			rows, err := w.db.QueryContext(t.Context(), fmt.Sprintf("SELECT id, v FROM t_%s", name))
			expect.ErrorIs(t, err)
			defer rows.Close()
			n := 0
			for rows.Next() {
				var id int64
				var want sql.RawBytes
				expect.ErrorIs(t, rows.Scan(&id, &want))
				n++
				mu.Lock()
				seen := got[id]
				mu.Unlock()
				switch {
				case strings.HasPrefix(name, "refused_"):
					if !strings.HasPrefix(seen, "refused: ") {
						t.Errorf("%s: the feed has %q of %q", c.is, seen, want)
					}
				case seen == string(want), seen == string(want)+" 00:00:00", seen+".000" == string(want): // a point in time
				case name == "real_" && len(want) > 0: // other texts of the same number
					var a, b float64
					_, _ = fmt.Sscan(seen, &a)
					_, _ = fmt.Sscan(string(want), &b)
					expect.Equal(t, c.is, a, b)
				default:
					t.Errorf("%s: the feed has %q, a query %q", c.is, seen, want)
				}
			}
			expect.ErrorIs(t, rows.Err())
			expect.Equal(t, "rows", n, len(c.values))
			if strings.HasPrefix(name, "refused_") {
				feedtest.Says(t, checked, w.name+".t_"+name, "column v")
				expect.Equal(t, "rows without keys", f.Stats().Unmapped, uint64(n))
				return
			}
			expect.ErrorIs(t, checked)
		})
	}
}

// TestEveryCharsetAndTypeOfTheServerIsDecidedAbout fails for one that nobody has thought of.
func TestEveryCharsetAndTypeOfTheServerIsDecidedAbout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	list := func(query string) (all []string) {
		rows, err := w.db.QueryContext(t.Context(), query)
		expect.ErrorIs(t, err)
		defer rows.Close()
		for rows.Next() {
			var name string
			expect.ErrorIs(t, rows.Scan(&name))
			all = append(all, strings.ToLower(name))
		}
		expect.ErrorIs(t, rows.Err())
		return all
	}
	refusedCharsets := strings.Fields("big5 dec8 cp850 hp8 koi8r latin2 swe7 ujis sjis hebrew tis620 euckr koi8u gb2312 greek cp1250 gbk latin5 armscii8 ucs2 cp866 keybcs2 macce " +
		"macroman cp852 latin7 cp1251 utf16 utf16le cp1256 cp1257 utf32 binary geostd8 cp932 eucjpms")
	known := func(what string, found, decided []string) {
		for _, name := range found {
			if !strings.Contains(" "+strings.Join(decided, " ")+" ", " "+name+" ") {
				t.Errorf("nobody has decided about %s %s", what, name)
			}
		}
	}
	known("charset", list("SELECT character_set_name FROM information_schema.character_sets"), append(refusedCharsets, charsets...))
	known("type", list("SELECT plugin_name FROM information_schema.plugins WHERE plugin_type = 'DATA TYPE'"), append(kinds, "mysql_json"))
	known("engine", list("SELECT engine FROM information_schema.engines"), append(engines, refusedEngines...))
	known("kind of table", list("SELECT DISTINCT replace(table_type, ' ', '_') FROM information_schema.tables"), []string{"base_table", "view", "system_view", "sequence", "system_versioned"})
}

func TestATableWithoutAMappingStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("CREATE TABLE odd (id int PRIMARY KEY, a text COMPRESSED, b varchar(100) COMPRESSED, c varchar(10))", "INSERT INTO odd VALUES (1, repeat('x', 1000), repeat('y', 100), 'z')")
	w.exec("UPDATE products SET name = 'uno'")
	w.CatchUp(f)
	w.Reads(1, "uno")
	expect.ErrorIs(t, f.Stats().Err)
}

func TestAMappedTableThatCannotBeReadIsInvalidatedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t, "--mysql56-temporal-format=OFF").Socket)
	f, _ := w.run(w.config())
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	for _, definition := range []string{"ADD COLUMN long_ text COMPRESSED FIRST", "DROP COLUMN long_, ADD COLUMN at datetime(6) FIRST"} {
		w.exec("ALTER TABLE products " + definition)
		w.CatchUp(f)
		w.Reads(1, "one")
		before := f.Stats().Unmapped
		w.exec("UPDATE products SET name = 'uno'")
		w.CatchUp(f)
		w.Reads(1, "uno")
		expect.Equal(t, "events without keys", f.Stats().Unmapped-before, 1)
		w.exec("UPDATE products SET name = 'one'")
		w.CatchUp(f)
	}
}

func TestAPositionThatCannotBePassedIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, startServer(t).Socket)
	f, err := New(w.config())
	expect.ErrorIs(t, err)
	f.decode = func(e *replication.RowsEvent, data []byte) error {
		if strings.Contains(string(data), "unreadable") {
			return errors.New("what is that?")
		}
		return f.decodeRows(e, data)
	}
	feedtest.Run(w.Shop, f, nil)
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	whole := f.Stats().Whole
	w.exec("UPDATE products SET name = 'uno'", "INSERT INTO products VALUES (2, 'a', 'unreadable')")
	w.CatchUp(f)
	w.Reads(1, "uno")
	w.Reads(2, "unreadable")
	expect.Equal(t, "whole kinds", f.Stats().Whole-whole, 1)
	w.Logs("the position is given up")
}

func TestARowWithoutAValueInvalidatesTheKindWholeAndStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	f, _ := w.run(w.config(cdc.Table{Name: w.name + ".products", Kinds: []cdc.Kind{w.Products}, Changed: func(c cdc.Change) cacheguard.Changes {
		_, _ = c.New.String("category") // the feed has the error
		return cacheguard.Changes{}
	}}))
	w.exec("INSERT INTO products VALUES (1, 'a', 'one')")
	w.CatchUp(f)
	w.Reads(1, "one")
	w.exec("SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE products SET name = 'uno'")
	w.CatchUp(f)
	w.Reads(1, "uno")
	expect.Equal(t, "rows without keys", f.Stats().Unmapped, 1)
	w.Logs("column category")
}

// TestNobodyWaitsForAPositionThatSaysNothing has feeds that do not read for this cache.
func TestNobodyWaitsForAPositionThatSaysNothing(t *testing.T) {
	t.Parallel()
	nothing := func(cdc.Change) cacheguard.Changes { return cacheguard.Changes{} }
	for name, c := range map[string]struct {
		change func(w *world, cfg *Config)
		says   string
	}{
		"another Prefix": {func(w *world, cfg *Config) {
			guard, products := feedtest.NewCache(w, w.redis.Client(w), "other", sql.ErrNoRows, feedtest.LoadNothing)
			cfg.Guards, cfg.Tables = []*cacheguard.Guard{guard}, []cdc.Table{feedtest.ByID(w.name+".products", products)}
		}, "another feed"},
		"another Redis": {func(w *world, cfg *Config) {
			guard, products := feedtest.NewCache(w, redistest.Start(w).Client(w), w.name, sql.ErrNoRows, feedtest.LoadNothing)
			cfg.Guards, cfg.Tables = []*cacheguard.Guard{guard}, []cdc.Table{feedtest.ByID(w.name+".products", products)}
		}, "another feed"},
		"a table that the reader does not map": {func(w *world, cfg *Config) {
			w.exec("CREATE TABLE leaf (id int PRIMARY KEY)")
			cfg.Tables = append(cfg.Tables, cdc.Table{Name: w.name + ".leaf", Changed: nothing})
		}, "does not map"},
		"a table that is not there": {func(w *world, cfg *Config) {
			cfg.Tables = append(cfg.Tables, cdc.Table{Name: w.name + ".none", Changed: nothing})
		}, "there is no table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "")
			reads, _ := w.run(w.config())
			w.CatchUp(reads)
			cfg := w.config()
			c.change(w, &cfg)
			second, _ := w.run(cfg)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			feedtest.Says(t, second.CatchUp(ctx), c.says)
			if c.says != "does not map" { // which is so while a new version replaces an old one
				feedtest.Says(t, second.SelfCheck(ctx), c.says)
			}
			if c.says == "another feed" {
				w.Await("the one that stands by says so", func() bool { return errors.Is(second.Stats().Err, engine.ErrAnother) })
			}
			w.CatchUp(reads)
		})
	}
}

func TestAnInstanceThatStandsByIsOutOfTroubleAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	first, stop := w.run(w.config())
	w.CatchUp(first)
	proxy := redistest.StartProxy(t, w.redis.Addr())
	cfg := w.config()
	cfg.Redis = proxy.Client(t)
	second, _ := w.run(cfg)
	proxy.Refuse(true)
	proxy.Cut()
	w.Await("it is in trouble", func() bool { return second.Stats().Err != nil })
	proxy.Refuse(false)
	w.Await("it is well, and stands by", func() bool { return second.Stats().Err == nil })
	expect.Equal(t, "it reads", second.Stats().Reading, false)
	stop()
}
