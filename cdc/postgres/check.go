package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/cacheguard/go/cdc/internal/engine"
)

// SelfCheck returns what keeps the feed from working, joined, each with the statement that mends it: settings of the server, rights of the role, the
// publication and its tables, their REPLICA IDENTITY, the slot. It changes nothing. nil: the feed can work.
func (f *Feed) SelfCheck(ctx context.Context) error {
	if f == nil {
		return errNilFeed
	}
	side, err := f.dial(ctx)
	if err != nil {
		return err
	}
	defer hangUp(side)
	var p problems
	if _, err := f.checkTables(ctx, side, &p); err != nil {
		return err
	}
	if err := f.checkRole(ctx, side, &p); err != nil {
		return err
	}
	if err := f.checkIdentities(ctx, side, &p); err != nil {
		return err
	}
	slot, err := f.look(ctx, side)
	if slot.lost {
		p.add("slot %s is lost: the feed will drop it, and invalidate everything", f.cfg.Slot)
	}
	return errors.Join(append(p, err)...)
}

type problems []error

func (p *problems) add(format string, args ...any) {
	*p = append(*p, fmt.Errorf("cdc/postgres: "+format, args...))
}

// ready returns the object ids of the tables, or an error that says why changes would be missed.
func (f *Feed) ready(ctx context.Context, side *pgx.Conn) (map[uint32]*engine.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var p problems
	ids, err := f.checkTables(ctx, side, &p)
	if err := errors.Join(append(p, err)...); err != nil {
		return nil, err
	}
	return ids, nil
}

// checkTables checks the server and the publication, and that the publication has the tables.
func (f *Feed) checkTables(ctx context.Context, side *pgx.Conn, p *problems) (map[uint32]*engine.Table, error) {
	var level string
	var standby bool
	var number int
	err := side.QueryRow(ctx, "SELECT current_setting('wal_level'), pg_is_in_recovery(), current_setting('server_version_num')::int").Scan(&level, &standby, &number)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	if number < 130000 {
		p.add("the server is older than PostgreSQL 13")
	}
	if level != "logical" {
		p.add("wal_level is %s (mend with: ALTER SYSTEM SET wal_level = 'logical', and a restart)", level)
	}
	if standby {
		p.add("the server is a standby: Conn must lead to the primary")
	}
	publication := identifier(f.cfg.Publication)
	var all, root bool
	err = side.QueryRow(ctx, `SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate,
		pubviaroot AND EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind = 'p' AND n.nspname || '.' || c.relname = ANY($2))
		FROM pg_publication WHERE pubname = $1`, f.cfg.Publication, f.engine.Tables.Names()).Scan(&all, &root)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		p.add("there is no publication %s (mend with: CREATE PUBLICATION %s FOR TABLE %s)",
			f.cfg.Publication, publication, strings.Join(f.engine.Tables.Names(), ", "))
		return nil, nil // the problem says enough
	case err != nil:
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	case !all:
		p.add("publication %s leaves changes out (mend with: ALTER PUBLICATION %s SET (publish = 'insert, update, delete, truncate'))", f.cfg.Publication, publication)
	}
	if root {
		p.add("publication %s leaves out the TRUNCATE of a partition (mend with: ALTER PUBLICATION %s SET (publish_via_partition_root = false))",
			f.cfg.Publication, publication)
	}
	return f.checkPublished(ctx, side, p, number)
}

// published has, for each table of the database: its name, its id, whether changes of it or of all its partitions are published, and
// whether some rows are not.
const published = `SELECT n.nspname || '.' || c.relname, c.oid, (
		SELECT coalesce(bool_and(EXISTS (
			SELECT FROM pg_publication_tables t JOIN pg_namespace tn ON tn.nspname = t.schemaname
			JOIN pg_class tc ON tc.relnamespace = tn.oid AND tc.relname = t.tablename
			WHERE t.pubname = $1 AND (tc.oid = leaf.oid OR tc.oid = c.oid))), true)
		FROM (SELECT relid AS oid FROM pg_partition_tree(c.oid) WHERE isleaf UNION SELECT c.oid WHERE c.relkind = 'r') leaf),
	c.relkind IN ('r', 'p')
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\_%' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`

const filtered = `SELECT c.relname FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid JOIN pg_class c ON c.oid = r.prrelid
	WHERE p.pubname = $1 AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)`

func (f *Feed) checkPublished(ctx context.Context, side *pgx.Conn, p *problems, number int) (map[uint32]*engine.Table, error) {
	publication := identifier(f.cfg.Publication)
	ids, found := make(map[uint32]*engine.Table), make(map[string]bool)
	var names []string
	rows, err := side.Query(ctx, published, f.cfg.Publication)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	var name string
	var id uint32
	var sent, table bool
	_, err = pgx.ForEachRow(rows, []any{&name, &id, &sent, &table}, func() error {
		names = append(names, name)
		mapped := f.engine.Tables[name]
		if mapped == nil {
			return nil
		}
		ids[id], found[name] = mapped, true
		switch {
		case !table:
			p.add("%s is no table", name)
		case !sent:
			p.add("publication %s does not have table %s (mend with: ALTER PUBLICATION %s ADD TABLE %s)", f.cfg.Publication, name, publication, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	for _, name := range f.engine.Tables.Names() {
		if !found[name] {
			p.add("there is no table %s%s", name, engine.Near(name, names))
		}
	}
	if number < 150000 {
		return ids, nil // before, publications had neither
	}
	rows, err = side.Query(ctx, filtered, f.cfg.Publication)
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	partly, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("cdc/postgres: %w", err)
	}
	slices.Sort(partly)
	for _, name := range partly {
		p.add("publication %s has a WHERE or a list of columns for table %s, so changes would be missed (mend with: ALTER PUBLICATION %s DROP TABLE %s, "+
			"and ADD TABLE without one)", f.cfg.Publication, name, publication, name)
	}
	return ids, nil
}

const fingerprint = `SELECT format('%s.%s', p.oid, p.xmin) || coalesce(string_agg(format(' %s.%s.%s', c.oid, r.oid, r.xmin), '' ORDER BY c.oid), '')
	FROM pg_publication p
	LEFT JOIN (pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace) ON n.nspname || '.' || c.relname = ANY($2)
	LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid
	WHERE p.pubname = $1 GROUP BY p.oid, p.xmin`

// fingerprint changes when a mapped table enters or leaves the publication. The log says nothing about that.
func (f *Feed) fingerprint(ctx context.Context, side *pgx.Conn) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = side.QueryRow(ctx, fingerprint, f.cfg.Publication, f.engine.Tables.Names()).Scan(&text)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) { // there is none
		return "", fmt.Errorf("cdc/postgres: look at publication %s: %w", f.cfg.Publication, err)
	}
	return text, nil
}

func (f *Feed) checkRole(ctx context.Context, side *pgx.Conn, p *problems) error {
	var role string
	var may bool
	var used, slots, senders int
	err := side.QueryRow(ctx, `SELECT rolname, rolreplication OR rolsuper,
		(SELECT count(*) FROM pg_replication_slots WHERE slot_name <> $1), current_setting('max_replication_slots')::int, current_setting('max_wal_senders')::int
		FROM pg_roles WHERE rolname = current_user`, f.cfg.Slot).Scan(&role, &may, &used, &slots, &senders)
	if err != nil {
		return fmt.Errorf("cdc/postgres: %w", err)
	}
	if !may {
		p.add("role %s may not replicate (mend with: ALTER ROLE %s REPLICATION)", role, identifier(role))
	}
	if used+2 > slots { // the slot, and the temporary one that it is copied from
		p.add("%d of %d replication slots are used by others, and the feed needs 2 (mend with: ALTER SYSTEM SET max_replication_slots = %d, and a restart)", used, slots, used+2)
	}
	if senders == 0 {
		p.add("max_wal_senders is 0 (mend with: ALTER SYSTEM SET max_wal_senders = 10, and a restart)")
	}
	return nil
}

// identities has the mapped tables, and their partitions, whose old rows have no identity.
const identities = `SELECT DISTINCT n.nspname || '.' || c.relname FROM unnest($1::oid[]) AS mapped(id)
	CROSS JOIN LATERAL (SELECT relid AS oid FROM pg_partition_tree(mapped.id) WHERE isleaf UNION SELECT mapped.id) leaf
	JOIN pg_class c ON c.oid = leaf.oid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND (c.relreplident = 'n'
		OR c.relreplident = 'd' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
		OR c.relreplident = 'i' AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisreplident))
	ORDER BY 1`

// checkIdentities checks what PostgreSQL checks when somebody updates or deletes rows: it refuses that.
func (f *Feed) checkIdentities(ctx context.Context, side *pgx.Conn, p *problems) error {
	var mapped []uint32
	rows, err := side.Query(ctx, `SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname || '.' || c.relname = ANY($1)`, f.engine.Tables.Names())
	if err == nil {
		mapped, err = pgx.CollectRows(rows, pgx.RowTo[uint32])
	}
	if err == nil {
		rows, err = side.Query(ctx, identities, mapped)
	}
	if err != nil {
		return fmt.Errorf("cdc/postgres: %w", err)
	}
	none, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("cdc/postgres: %w", err)
	}
	for _, name := range none {
		p.add("table %s has no REPLICA IDENTITY, so PostgreSQL refuses to UPDATE and DELETE its rows while it is published "+
			"(mend with: ALTER TABLE %s ADD PRIMARY KEY (…), or ALTER TABLE %s REPLICA IDENTITY FULL)", name, name, name)
	}
	return nil
}
