package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// tree is what the catalogue has of the mapped tables: of each its partitions and children, and of all of them their columns and what is published. Whatever changes in it
// may change which rows the log has, and says nothing in the log.
type tree struct {
	publication string            // which, and as of which change of its settings
	roots       map[uint32]string // the mapped tables by object id
	members     map[[2]uint32]member
	published   map[string]string // of each mapped table: see sum
}

// member is a table, by a mapped one and its own object id: the mapped table itself, a partition of it, or a child, at any depth.
type member struct {
	root, name        string // with their schemas
	kind, persistence string
	identity          string // relreplident; or empty, if the log has no old rows by it
	published, partly bool   // all of its rows, or some rows or columns
	partition         bool
	state             string // changes with what is published of it
	shape             string // changes with its name, its place in the tree, its columns and its file, also if that is undone
}

// kinds are the kinds of tables that the log has rows of, by pg_class.relkind. A partitioned table has none itself.
var kinds = map[string]string{"r": "table", "p": "partitioned table"}

// notRead are the other kinds, and why they cannot be mapped, nor be part of a table that is.
var notRead = map[string]string{
	"f": "is a foreign table, and its changes are in the log of another server", "v": "is no table, but a view", "m": "is no table, but a materialized view",
	"S": "is no table, but a sequence", "i": "is no table, but an index", "I": "is no table, but an index", "t": "is no table, but the long values of one",
	"c": "is no table, but a type",
}

// members has the tree. $1 is the publication's id, $2 are the names of mapped tables. Names are compared as texts, so that any name can be mapped. A table that
// leaves the log (SET UNLOGGED) and returns has another file; PostgreSQL refuses that for one that is published by its own name.
const members = `WITH RECURSIVE mapped AS (
		SELECT c.oid, wanted.name FROM unnest($2::text[]) AS wanted(name) JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace)
		ON wanted.name = n.nspname || '.' || c.relname),
	below AS (SELECT oid AS root, name, oid AS id FROM mapped UNION SELECT b.root, b.name, i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.id),
	above AS (SELECT DISTINCT id, id AS at FROM below
		UNION SELECT a.id, i.inhparent FROM above a JOIN pg_class c ON c.oid = a.at AND c.relispartition JOIN pg_inherits i ON i.inhrelid = a.at),
	lines AS (SELECT a.id, string_agg(format('%s %s %s.%s', a.at, y.xmin, i.inhparent, i.xmin), ' ' ORDER BY a.at, i.inhparent) AS shape
		FROM above a JOIN pg_class c ON c.oid = a.at LEFT JOIN pg_type y ON y.oid = c.reltype LEFT JOIN pg_inherits i ON i.inhrelid = a.at GROUP BY a.id),
	tables AS (SELECT a.id, string_agg(format('%s.%s', r.oid, r.xmin), ' ' ORDER BY r.oid) AS state, bool_or(<partly>) AS partly
		FROM above a JOIN pg_publication_rel r ON r.prrelid = a.at AND r.prpubid = $1 GROUP BY a.id),
	schemas AS (<schemas>)
	SELECT b.root, b.name, c.oid, n.nspname || '.' || c.relname, c.relkind::text, c.relpersistence::text,
		CASE WHEN c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
			OR c.relreplident = 'i' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident) OR c.relreplident = 'n' THEN ''
			ELSE c.relreplident::text END,
		c.oid >= 16384 AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND (t.id IS NOT NULL OR s.id IS NOT NULL OR (SELECT puballtables FROM pg_publication WHERE oid = $1)),
		coalesce(t.partly, false), c.relispartition, format('%s %s %s %s', c.relkind, c.relpersistence, t.state, s.state),
		md5(format('%s %s %s %s', n.xmin, l.shape,
			CASE WHEN NOT EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = c.oid AND prpubid = $1) THEN c.relfilenode END,
			(SELECT string_agg(format('%s.%s', attnum, xmin), ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0)))
	FROM below b JOIN pg_class c ON c.oid = b.id JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN lines l ON l.id = b.id
	LEFT JOIN tables t ON t.id = b.id LEFT JOIN schemas s ON s.id = b.id ORDER BY b.name, 4`

// look15 is how PostgreSQL 15 and later publish a part of a table, and whole schemas.
var look15 = strings.NewReplacer("<partly>", "r.prqual IS NOT NULL OR r.prattrs IS NOT NULL",
	"<schemas>", `SELECT a.id, string_agg(format('%s.%s', p.oid, p.xmin), ' ' ORDER BY p.oid) AS state
		FROM above a JOIN pg_class c ON c.oid = a.at JOIN pg_publication_namespace p ON p.pnnspid = c.relnamespace AND p.pnpubid = $1 GROUP BY a.id`)

var lookBefore = strings.NewReplacer("<partly>", "false", "<schemas>", "SELECT 0::oid AS id, '' AS state WHERE false")

// tree asks for the tree, and notes what keeps changes from being in the log.
func (f *Feed) tree(ctx context.Context, side *pgx.Conn, p *problems) (*tree, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at := &tree{roots: make(map[uint32]string), members: make(map[[2]uint32]member)}
	var publication uint32
	var all, root bool
	err := side.QueryRow(ctx, `SELECT oid, format('%s.%s', oid, xmin), pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot
		FROM pg_publication WHERE pubname = $1`, f.cfg.Publication).Scan(&publication, &at.publication, &all, &root)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		p.add("there is no publication %s (mend with: CREATE PUBLICATION %s FOR TABLE %s)",
			f.cfg.Publication, identifier(f.cfg.Publication), strings.Join(quoted(f.engine.Tables.Names()), ", "))
		return at, nil // the problem says enough
	case err != nil:
		return nil, fmt.Errorf("cdc/postgres: look at publication %s: %w", f.cfg.Publication, err)
	case !all:
		p.add("publication %s leaves changes out (mend with: ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate'))",
			f.cfg.Publication, identifier(f.cfg.Publication))
	}
	query := lookBefore.Replace(members)
	if version(side) >= 15 {
		query = look15.Replace(members)
	}
	rows, err := side.Query(ctx, query, publication, f.engine.Tables.Names())
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	var id [2]uint32
	var m member
	_, err = pgx.ForEachRow(rows, []any{
		&id[0], &m.root, &id[1], &m.name, &m.kind, &m.persistence, &m.identity, &m.published, &m.partly, &m.partition, &m.state, &m.shape,
	}, func() error {
		at.roots[id[0]], at.members[id] = m.root, m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	at.sum()
	return at, f.judge(ctx, side, at, root, p)
}

// sum notes what is published of each mapped table, as the note in Redis has it.
func (at *tree) sum() {
	states, shapes := make(map[string][]string), make(map[string][]string)
	for id, m := range at.members {
		states[m.root] = append(states[m.root], fmt.Sprint(at.publication, id[0], m.state))
		shapes[m.root] = append(shapes[m.root], fmt.Sprint(id[1], m.state, m.shape))
	}
	at.published = make(map[string]string)
	for root := range states {
		at.published[root] = short(slices.Compact(slices.Sorted(slices.Values(states[root])))) + " " + short(slices.Sorted(slices.Values(shapes[root])))
	}
}

func short(texts []string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(strings.Join(texts, "\n"))) // it never fails
	return strconv.FormatUint(sum.Sum64(), 36)
}

// states is the part of what was noted that changes when changes may have been left out of the log, and shapes the part that changes with values that no row has.
func states(noted string) string { s, _, _ := strings.Cut(noted, " "); return s }

func shapes(noted string) string { _, s, _ := strings.Cut(noted, " "); return s }

// judge notes what keeps changes from being in the log.
func (f *Feed) judge(ctx context.Context, side *pgx.Conn, at *tree, viaRoot bool, p *problems) error {
	there := make(map[string]int)
	for _, root := range at.roots {
		there[root]++
	}
	for _, name := range f.engine.Tables.Names() {
		switch there[name] {
		case 1:
		case 0:
			near, err := f.near(ctx, side, name)
			if err != nil {
				return err
			}
			p.add("there is no table %s%s", name, near)
		default:
			p.add("%s is the name of two tables, as there are dots in the names of their schemas", name)
		}
	}
	publication, partitioned := identifier(f.cfg.Publication), false
	for _, m := range at.sorted() {
		partitioned = partitioned || m.partition || m.kind == "p"
		table := quote(m.name)
		switch {
		case kinds[m.kind] == "":
			why, known := notRead[m.kind]
			if !known {
				why = "is of a kind that is not known: " + m.kind
			}
			p.add("%s%s %s", m.name, of(m), why)
		case m.kind == "p" && m.name != m.root: // what counts is its partitions
		case m.persistence != "p" && m.kind == "r":
			p.add("table %s%s is unlogged or temporary, so its changes are not in the log (mend with: ALTER TABLE %s SET LOGGED)", m.name, of(m), table)
		case !m.published && !(m.kind == "p" && at.hasPartitions(m)):
			p.add("publication %s does not have table %s%s (mend with: ALTER PUBLICATION %s ADD TABLE %s)", f.cfg.Publication, m.name, of(m), publication, table)
		case m.partly:
			p.add("publication %s has a WHERE or a list of columns for table %s%s, so changes would be missed (mend with: ALTER PUBLICATION %s DROP TABLE %s, "+
				"and ADD TABLE without one)", f.cfg.Publication, m.name, of(m), publication, table)
		}
	}
	if viaRoot && partitioned {
		p.add("publication %s publishes partitions as if they were their tables, and leaves out the TRUNCATE of a partition "+
			"(mend with: ALTER PUBLICATION %s SET (publish_via_partition_root = false))", f.cfg.Publication, publication)
	}
	return nil
}

// of says what a member belongs to.
func of(m member) string {
	if m.name == m.root {
		return ""
	}
	return " of " + m.root
}

// near suggests a name that somebody may have meant.
func (f *Feed) near(ctx context.Context, side *pgx.Conn, name string) (string, error) {
	rows, err := side.Query(ctx, `SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')`)
	if err != nil {
		return "", fmt.Errorf("cdc/postgres: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("cdc/postgres: %w", err)
	}
	return engine.Near(name, names), nil
}

// sorted are the members in the order of their names.
func (at *tree) sorted() []member {
	return slices.SortedFunc(maps.Values(at.members), func(a, b member) int { return strings.Compare(a.root+"\x00"+a.name, b.root+"\x00"+b.name) })
}

func (at *tree) hasPartitions(m member) bool {
	for _, other := range at.members {
		if other.root == m.root && other.name != m.name {
			return true
		}
	}
	return false
}

// since compares the tree with what it was. Whole are mapped tables whose partitions, children, columns or files are others: they came and went with values that nobody logged. The
// error says that changes may have been left out of the log.
func (at *tree) since(before *tree, problems error) (whole []string, err error) {
	switch {
	case at.publication != before.publication:
		return nil, givenUp("the publication is another one, or its settings are, so changes may have been left out")
	case !maps.Equal(at.roots, before.roots):
		return nil, givenUp("a mapped table is another one, so changes may have been left out")
	case problems != nil:
		return nil, givenUp("changes are left out: " + strings.ReplaceAll(problems.Error(), "\n", "; "))
	}
	for id, m := range at.members {
		was, there := before.members[id]
		switch {
		case !there || was.shape != m.shape && was.state == m.state:
			whole = append(whole, m.root)
		case was.state != m.state:
			return nil, givenUp("what is published of table " + m.name + of(m) + " is something else, so changes may have been left out")
		}
	}
	for id, m := range before.members {
		if _, there := at.members[id]; !there {
			whole = append(whole, m.root)
		}
	}
	slices.Sort(whole)
	return slices.Compact(whole), nil
}

// tables are the mapped ones by object id.
func (at *tree) tables(all engine.Tables) map[uint32]*engine.Table {
	ids := make(map[uint32]*engine.Table)
	for id, name := range at.roots {
		ids[id] = all[name]
	}
	return ids
}

// quoted are the names of tables as SQL has them. The first dot ends the schema, as a rule.
func quoted(names []string) (all []string) {
	for _, name := range names {
		all = append(all, quote(name))
	}
	return all
}

func quote(name string) string {
	schema, table, _ := strings.Cut(name, ".")
	return plain(schema) + "." + plain(table)
}

// plain quotes a name where that is needed.
func plain(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return identifier(name)
}
