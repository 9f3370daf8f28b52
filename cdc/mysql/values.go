package mysql

import (
	"fmt"
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
	unsigned, enums, sets := e.Table.UnsignedMap(), e.Table.EnumStrValueMap(), e.Table.SetStrValueMap()
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
			return all[i].value(values[i], e.Table.ColumnType[i], unsigned[i], slices.Concat(enums[i], sets[i]))
		}))
	}
	return rows
}

// valueOf makes one of the types of cdc.Row.Value. The log has numbers without their sign, as numbers with one.
func valueOf(v any, kind byte, unsigned bool) any {
	switch v := v.(type) {
	case int8:
		return wide(int64(v), unsigned, 8)
	case int16:
		return wide(int64(v), unsigned, 16)
	case int32:
		if kind == mysql.MYSQL_TYPE_INT24 {
			return wide(int64(v), unsigned, 24)
		}
		return wide(int64(v), unsigned, 32)
	case int64:
		if unsigned && v < 0 {
			return uint64(v) // that is what it stands for
		}
		return v
	case int:
		return int64(v)
	case float32:
		return float64(v)
	case string:
		return text(v, kind)
	}
	return v
}

func wide(v int64, unsigned bool, bits int) any {
	if unsigned && v < 0 {
		return v + 1<<bits
	}
	return v
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
