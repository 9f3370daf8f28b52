package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// kind says how the text of a type is read.
type kind struct {
	base    uint32 // the type itself or, of a domain, the one that it is made of
	name    string // of that one; enum: of any enum
	refused string // the type whose text depends on the session that asks; empty: none does
}

// parsed are the types that Go has one for.
var parsed = strings.Fields("bool bpchar bytea date float4 float8 int2 int4 int8 oid timestamp timestamptz")

// texts are the other types of PostgreSQL whose text is the same in every session that has the server's defaults, which name sets.
var texts = strings.Fields("bit box char cid cidr circle gtsvector inet interval json jsonb jsonpath line lseg macaddr macaddr8 name numeric path pg_lsn pg_snapshot " +
	"point polygon refcursor text tid time timetz tsquery tsvector txid_snapshot uuid varbit varchar xid xid8 xml")

// others are refused: their text depends on the session, on its search_path or lc_monetary; or they hold statistics, and no table has them.
var others = strings.Fields("aclitem money regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure regrole regtype " +
	"pg_brin_bloom_summary pg_brin_minmax_multi_summary pg_dependencies pg_mcv_list pg_ndistinct pg_node_tree")

// typesOf has the parts of types: of a domain its base, and what arrays, ranges and rows consist of. Itself: the part is the type, or a domain is made of it.
const typesOf = `WITH RECURSIVE parts AS (SELECT o AS type, o AS part, true AS itself FROM unnest($1::oid[]) AS o
	UNION SELECT p.type, x.id, p.itself AND t.typtype = 'd' FROM parts p JOIN pg_type t ON t.oid = p.part CROSS JOIN LATERAL (
		SELECT t.typbasetype AS id WHERE t.typtype = 'd' UNION SELECT t.typelem WHERE t.typelem <> 0 AND t.typtype <> 'd'
		UNION SELECT rngsubtype FROM pg_range WHERE rngtypid = t.oid <multi>
		UNION SELECT atttypid FROM pg_attribute WHERE attrelid = t.typrelid AND t.typrelid <> 0 AND attnum > 0 AND NOT attisdropped) x)
	SELECT type, part, itself AND t.typtype <> 'd', CASE t.typtype WHEN 'e' THEN 'enum' ELSE t.typname::text END, t.oid < 16384 AND t.typtype = 'b' AND t.typcategory <> 'A' FROM parts JOIN pg_type t ON t.oid = part ORDER BY 1, 2`

// kindsOf returns the kinds of types. A type that is not there any more is refused.
func kindsOf(ctx context.Context, side *pgx.Conn, types []uint32) ([]kind, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	multi := ""
	if version(side) >= 14 {
		multi = "OR rngmultitypid = t.oid"
	}
	rows, err := side.Query(ctx, strings.Replace(typesOf, "<multi>", multi, 1), types)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	found := make(map[uint32]kind)
	var id, part uint32
	var itself, builtIn bool
	var name string
	_, err = pgx.ForEachRow(rows, []any{&id, &part, &itself, &name, &builtIn}, func() error {
		k := found[id]
		if itself {
			k.base, k.name = part, name
		}
		if builtIn && !slices.Contains(parsed, name) && !slices.Contains(texts, name) || part == pgtype.TimestamptzOID && !itself {
			k.refused = name // as an unknown one is
		}
		found[id] = k
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	kinds := make([]kind, len(types))
	for i, t := range types {
		k, there := found[t]
		if !there || k.base == 0 {
			k.refused = fmt.Sprintf("with the number %d, which is not there any more", t)
		}
		kinds[i] = k
	}
	return kinds, nil
}

// parse makes a value of its text.
func (k kind) parse(text string) (any, error) {
	if k.refused != "" {
		return nil, fmt.Errorf("its text depends on who asks for it: type %s", k.refused)
	}
	switch k.base {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.OIDOID:
		return strconv.ParseInt(text, 10, 64)
	case pgtype.Float4OID, pgtype.Float8OID:
		return strconv.ParseFloat(text, 64)
	case pgtype.BoolOID:
		return text == "t", nil
	case pgtype.ByteaOID:
		return hex.DecodeString(strings.TrimPrefix(text, `\x`))
	case pgtype.BPCharOID:
		return strings.TrimRight(text, " "), nil // as comparisons have it
	case pgtype.DateOID:
		return moment(time.DateOnly, text)
	case pgtype.TimestampOID:
		return moment("2006-01-02 15:04:05.999999", text)
	case pgtype.TimestamptzOID:
		return moment("2006-01-02 15:04:05.999999Z07", text)
	}
	return text, nil
}

// sample is a value of the type, for a row that does not exist.
func (k kind) sample() (any, error) {
	switch k.base {
	case pgtype.BoolOID:
		return k.parse("t")
	case pgtype.ByteaOID:
		return k.parse(`\x31`)
	case pgtype.DateOID:
		return k.parse("2000-01-01")
	case pgtype.TimestampOID:
		return k.parse("2000-01-01 00:00:00")
	case pgtype.TimestamptzOID:
		return k.parse("2000-01-01 00:00:00+00")
	}
	return k.parse("1")
}
