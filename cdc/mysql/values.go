package mysql

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/cacheguard/go/cdc"
)

// errNotLogged says what to do about a value that is missing.
var errNotLogged = fmt.Errorf("%w (mend with: SET GLOBAL binlog_row_image = 'FULL')", cdc.ErrNotLogged)

// rowsOf are the rows of an event: of an update, each old row is before its new one.
func rowsOf(e *replication.RowsEvent, columns []string, s schema) (rows []cdc.Row) {
	enums, sets := e.Table.EnumStrValueMap(), e.Table.SetStrValueMap()
	all := make([]column, len(columns))
	for i, name := range columns {
		all[i] = s[name]
	}
	for n, values := range e.Rows {
		var skipped []int
		if n < len(e.SkippedColumns) {
			skipped = e.SkippedColumns[n]
		}
		rows = append(rows, cdc.NewRow(columns, func(i int) (any, error) {
			switch {
			case i >= len(values) || slices.Contains(skipped, i):
				return nil, errNotLogged
			case values[i] == nil:
				return nil, nil // that is NULL
			}
			return all[i].value(values[i], e.Table.ColumnType[i], slices.Concat(enums[i], sets[i]))
		}))
	}
	return rows
}

// valueOf makes one of the types of cdc.Row.Value. The log has numbers without their sign: that of the column decides, and not what the log's reader takes it for.
func valueOf(v any, kind byte, unsigned bool) any {
	long := 32
	if kind == mysql.MYSQL_TYPE_INT24 {
		long = 24
	}
	switch v := v.(type) {
	case int8:
		return whole(uint64(v), unsigned, 8)
	case uint8:
		return whole(uint64(v), unsigned, 8)
	case int16:
		return whole(uint64(v), unsigned, 16)
	case uint16:
		return whole(uint64(v), unsigned, 16)
	case int32:
		return whole(uint64(v), unsigned, long)
	case uint32:
		return whole(uint64(v), unsigned, long)
	case int64:
		return whole(uint64(v), unsigned, 64)
	case uint64:
		return whole(v, unsigned, 64)
	case int:
		return int64(v)
	case float32:
		return float64(v)
	case string:
		return text(v, kind)
	}
	return v
}

// whole is the whole number that the last bits of n are.
func whole(n uint64, unsigned bool, bits int) any {
	rest := 64 - bits
	if !unsigned {
		return int64(n<<rest) >> rest // with the sign in front
	}
	if n = n << rest >> rest; n > math.MaxInt64 {
		return n
	}
	return int64(n) // it fits
}

// text is a text, or the time that it is. What Go has no time for stays a text, such as 0000-00-00.
func text(v string, kind byte) any {
	layout := ""
	switch kind {
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_NEWDATE:
		layout = time.DateOnly
	case mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_DATETIME2, mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIMESTAMP2:
		layout = "2006-01-02 15:04:05.999999"
	}
	if layout == "" {
		return v
	}
	t, err := time.Parse(layout, v)
	if err != nil {
		return v
	}
	return t
}
