package mysql

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/cacheguard/go/cdc"
)

// column is what the server knows about a column, and the log does not: the log has the bytes of a UUID, of a text in its charset, of a SET as a number.
type column struct {
	kind     string // information_schema.columns.data_type
	charset  string // empty: it is no text
	collated string // its collation, of a text
	length   int    // in bytes, of BINARY(n)
	decimals int    // of a second
	labels   string // its type with its labels, of an ENUM or a SET
	zeros    int    // digits of a ZEROFILL
	unsigned bool   // it has no negative numbers
	refused  string // why its value is not known; empty: it is
}

// schema has the columns of a table by their names. nil: the server does not have it.
type schema map[string]column

const columnsOf = `SELECT column_name, data_type, coalesce(character_set_name, ''), coalesce(collation_name, ''), coalesce(character_octet_length, 0), coalesce(datetime_precision, 0), column_type
	FROM information_schema.columns WHERE table_schema = ? AND table_name = ?`

// schemaOf asks for the columns of a table.
func schemaOf(ctx context.Context, db *sql.DB, database, table string) (schema, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	rows, err := db.QueryContext(ctx, columnsOf, database, table)
	if err != nil {
		return nil, fmt.Errorf("cdc/mysql: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err says what matters
	all := make(schema)
	for rows.Next() {
		var c column
		var name, whole string
		if err := rows.Scan(&name, &c.kind, &c.charset, &c.collated, &c.length, &c.decimals, &whole); err != nil {
			return nil, fmt.Errorf("cdc/mysql: %w", err)
		}
		c.refused, c.unsigned = refused(c, whole), strings.Contains(whole, "unsigned") || c.kind == "bit"
		if c.kind == "enum" || c.kind == "set" {
			c.labels = whole
		}
		if strings.HasSuffix(whole, "zerofill") {
			_, _ = fmt.Sscanf(whole, c.kind+"(%d)", &c.zeros) // the server writes it so
		}
		all[name] = c
	}
	return all, rows.Err()
}

// charsets are those whose texts are converted to UTF-8 here.
var charsets = []string{"utf8mb4", "utf8mb3", "utf8", "ascii", "latin1"}

// kinds are the types whose values are what a query returns.
var kinds = strings.Fields("tinyint smallint mediumint int bigint decimal double bit year date time datetime timestamp char varchar tinytext text mediumtext longtext " +
	"binary varbinary tinyblob blob mediumblob longblob enum set uuid inet6 inet4")

// refused says why the value of a column is not known for certain.
func refused(c column, whole string) string {
	switch {
	case !slices.Contains(kinds, c.kind):
		return "the value of type " + c.kind + " is not known"
	case c.charset != "" && !slices.Contains(charsets, c.charset):
		return "texts in charset " + c.charset + " are not read"
	case strings.Contains(whole, "zerofill") && (c.kind == "decimal" || c.kind == "double"):
		return "the zeros of ZEROFILL are not known"
	case whole == "year(2)":
		return "queries return two digits of it, or four"
	case strings.Contains(whole, "COMPRESSED"):
		return "it is COMPRESSED"
	}
	return ""
}

// readable are the types of the log that can be told apart from what follows them in a row.
var readable = []byte{
	mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_TIMESTAMP,
	mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_YEAR,
	mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_BIT, mysql.MYSQL_TYPE_TIMESTAMP2, mysql.MYSQL_TYPE_DATETIME2, mysql.MYSQL_TYPE_TIME2, mysql.MYSQL_TYPE_NEWDECIMAL,
	mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_GEOMETRY,
}

// decodeRows reads the rows of an event, if its table is mapped. An event without rows is one that cannot be read: its table's rows are not known.
func (f *Feed) decodeRows(e *replication.RowsEvent, data []byte) error {
	at, err := e.DecodeHeader(data)
	if err != nil {
		return err
	}
	if f.engine.Tables[nameOf(e)] == nil {
		return nil
	}
	for _, kind := range e.Table.ColumnType {
		if !slices.Contains(readable, kind) {
			return nil
		}
	}
	if e.DecodeData(at, data) != nil {
		e.Rows = nil
	}
	return nil
}

func nameOf(e *replication.RowsEvent) string {
	return string(e.Table.Schema) + "." + string(e.Table.Table)
}

var (
	errUnknown = errors.New("the server does not say what its type is by now")
	errHides   = errors.New("it is COMPRESSED, or of a type that hides where the next value begins")
	errRows    = errors.New("its rows in the log cannot be read")
	errHires   = errors.New("its type has fractions of seconds in MariaDB's old format (mysql56_temporal_format), which hide where the next value begins")
)

// fits says why the rows of an event cannot be read with the schema.
func (s schema) fits(e *replication.RowsEvent, columns []string) error {
	for i, name := range columns {
		c, there := s[name]
		switch kind := e.Table.ColumnType[i]; {
		case !there:
			return &cdc.ColumnError{Column: name, Err: errUnknown}
		case !slices.Contains(readable, kind):
			return &cdc.ColumnError{Column: name, Err: errHides}
		case c.decimals > 0 && (kind == mysql.MYSQL_TYPE_TIME || kind == mysql.MYSQL_TYPE_DATETIME || kind == mysql.MYSQL_TYPE_TIMESTAMP):
			return &cdc.ColumnError{Column: name, Err: errHires}
		}
	}
	if len(e.Rows) == 0 {
		return errRows
	}
	return nil
}

// value makes a value of the log what a query returns. labels belong to an ENUM or a SET.
func (c column) value(v any, kind byte, labels []string) (any, error) {
	if c.refused != "" {
		return nil, errors.New(c.refused)
	}
	switch c.kind {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		return c.text(bytesOf(v))
	case "binary":
		return padded(bytesOf(v), c.length), nil
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return bytesOf(v), nil
	case "uuid":
		return uuid(padded(bytesOf(v), 16)), nil
	case "inet6":
		return inet6(padded(bytesOf(v), 16)), nil
	case "inet4":
		addr, _ := netip.AddrFromSlice(padded(bytesOf(v), 4)) // of 4 bytes
		return addr.String(), nil
	case "enum":
		return c.label(v, labels)
	case "set":
		return c.members(v, labels)
	}
	v = valueOf(v, kind, c.unsigned)
	if c.zeros > 0 {
		return fmt.Sprintf("%0*d", c.zeros, v), nil
	}
	if text, is := v.(string); is && c.decimals > 0 { // the log's reader leaves out a fraction of 0
		whole, fraction, _ := strings.Cut(text, ".")
		v = whole + "." + fraction + strings.Repeat("0", max(c.decimals-len(fraction), 0))
	}
	return v, nil
}

func bytesOf(v any) []byte {
	if text, is := v.(string); is {
		return []byte(text)
	}
	b, _ := v.([]byte) // the log has nothing else for texts
	return b
}

// padded gives back the zeros at the end, which the log leaves out.
func padded(b []byte, length int) []byte {
	return append(slices.Clone(b), make([]byte, max(length-len(b), 0))...)
}

// text converts a text to UTF-8.
func (c column) text(b []byte) (string, error) {
	switch c.charset {
	case "utf8mb4", "utf8mb3", "utf8":
		return string(b), nil
	case "ascii":
		if slices.ContainsFunc(b, func(c byte) bool { return c >= 0x80 }) {
			return "", errors.New("it is no ASCII")
		}
		return string(b), nil
	case "latin1":
		var text strings.Builder
		for _, c := range b {
			text.WriteRune(latin1(c))
		}
		return text.String(), nil
	}
	return "", errors.New("texts in charset " + c.charset + " are not read")
}

// latin1 is what MariaDB calls so: Windows-1252, where that has something.
func latin1(c byte) rune {
	if c >= 0x80 && c < 0xa0 {
		return []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")[c-0x80]
	}
	return rune(c)
}

// label is the text of an ENUM: 0 stands for the empty one of a value that was not valid.
func (c column) label(v any, labels []string) (any, error) {
	n, _ := v.(int64) // of an ENUM
	switch {
	case n == 0:
		return "", nil
	case n < 0 || int(n) > len(labels):
		return nil, fmt.Errorf("the log does not have label %d", n)
	}
	return c.text([]byte(labels[n-1]))
}

// members are the labels of a SET, which the log has as bits.
func (c column) members(v any, labels []string) (any, error) {
	bits, _ := v.(int64) // of a SET
	var all []string
	for i := range 64 {
		if uint64(bits)>>i&1 == 0 { // as they are
			continue
		}
		if i >= len(labels) {
			return nil, fmt.Errorf("the log does not have label %d", i+1)
		}
		label, err := c.text([]byte(labels[i]))
		if err != nil {
			return nil, err
		}
		all = append(all, label)
	}
	return strings.Join(all, ","), nil
}

// uuid is the text of a UUID. MariaDB stores the parts of one with a version up to 5, and earlier releases also of later ones, from the last to the first: then the
// variant is in the seventh byte, and the version in the ninth.
func uuid(b []byte) string {
	if b[6]&0x80 != 0 && b[8]&0x80 == 0 {
		b = slices.Concat(b[12:16], b[10:12], b[8:10], b[6:8], b[0:6])
	}
	text := hex.EncodeToString(b)
	return text[0:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:32]
}

// inet6 is the text of an INET6 as the server writes it: "::" takes the place of the first of the longest runs of zeros, also of a single one.
func inet6(b []byte) string {
	var words [8]uint16
	at, length := -1, 0
	for i, run := 0, 0; i < len(words); i++ {
		words[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
		if run++; words[i] != 0 {
			run = 0
		}
		if run > length {
			at, length = i+1-run, run
		}
	}
	var text strings.Builder
	for i := 0; i < len(words); i++ {
		switch {
		case i == at:
			text.WriteString("::")
			i += length - 1
		case i == 6 && at == 0 && (length == 6 || length == 5 && words[5] == 0xffff):
			return text.String() + netip.AddrFrom4([4]byte(b[12:])).String()
		default:
			fmt.Fprintf(&text, "%x", words[i])
			if i+1 < len(words) && i+1 != at {
				text.WriteString(":")
			}
		}
	}
	return text.String()
}

// sample is a value of the column, for a row that does not exist.
func (c column) sample() (any, error) {
	if c.refused != "" {
		return nil, errors.New(c.refused)
	}
	switch c.kind {
	case "date", "datetime", "timestamp":
		return valueOf("2000-01-01 00:00:00"[:map[string]int{"date": 10, "datetime": 19, "timestamp": 19}[c.kind]],
			map[string]byte{"date": mysql.MYSQL_TYPE_DATE, "datetime": mysql.MYSQL_TYPE_DATETIME2, "timestamp": mysql.MYSQL_TYPE_DATETIME2}[c.kind], false), nil
	case "tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year":
		return int64(1), nil
	case "double":
		return float64(1), nil
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return []byte("1"), nil
	}
	return "1", nil
}
