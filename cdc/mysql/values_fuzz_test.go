package mysql

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"github.com/cacheguard/go/cdc"
	"github.com/cacheguard/go/cdc/internal/engine"
)

func FuzzValueOf(f *testing.F) {
	for _, kind := range []byte{mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DATETIME2, mysql.MYSQL_TYPE_TIMESTAMP2, mysql.MYSQL_TYPE_VARCHAR} {
		for _, text := range []string{"", "0000-00-00", "2026-11-23", "2026-11-23 12:00:00.5", "9999-12-31 23:59:59.999999"} {
			f.Add(int64(-1), text, kind)
		}
	}
	f.Fuzz(func(t *testing.T, n int64, s string, kind byte) {
		numbers := map[int]any{8: int8(n), 16: uint16(n), 32: int32(n)}
		if kind == mysql.MYSQL_TYPE_INT24 {
			numbers = map[int]any{24: int32(n << 40 >> 40)}
		}
		for bits, v := range numbers {
			got, ok := valueOf(v, kind, true).(int64)
			if !ok || got < 0 || got >= 1<<bits {
				t.Errorf("%v without a sign, of %d bits, is %v", v, bits, got)
			}
		}
		if v := valueOf(s, kind, false); v == nil {
			t.Errorf("%q of type %d is NULL", s, kind)
		}
		for _, of := range kinds { // whatever it is, it is read without a panic
			for _, charset := range charsets {
				for _, v := range []any{n, s, []byte(s), int32(n), uint64(n), uint8(n)} {
					_, _ = column{kind: of, charset: charset, length: 20, unsigned: true}.value(v, kind, []string{"a", s})
				}
			}
		}
	})
}

func FuzzMentioned(f *testing.F) {
	for _, text := range []string{"", "truncate products", "drop database shop", "alter table `shop`.`products` add x int", "drop table other", "create schema x"} {
		f.Add(text, "shop")
		f.Add(text, "")
	}
	d := &decoder{engine: &engine.Engine{Tables: engine.Tables{
		"shop.products": {Table: cdc.Table{Name: "shop.products"}}, "shop.orders": {Table: cdc.Table{Name: "shop.orders"}},
	}}}
	f.Fuzz(func(t *testing.T, text, schema string) {
		_ = d.mentioned(text, schema)                                        // whatever it is, it is read without a panic
		if found := d.mentioned(text+" products", "shop"); len(found) == 0 { // what is named is found
			t.Errorf("%q mentions no table", text+" products")
		}
	})
}
