package mysql

import (
	"regexp"
	"strings"
)

// boundary are statements that begin a transaction or a part of it, and ending those that end one.
var (
	boundary = regexp.MustCompile(`(?is)^\s*(BEGIN(\s+WORK)?\s*$|START\s+TRANSACTION\b|SAVEPOINT\b|RELEASE\b|ROLLBACK\s+(WORK\s+)?TO\b|XA\s+(START|END)\b)`)
	ending   = regexp.MustCompile(`(?i)^\s*(COMMIT|ROLLBACK|XA\s+ROLLBACK)\b`)
)

// naming are the statements of MariaDB's manual that the server logs as a text, and that write nothing but what they name: they define, and run no expression of
// their author's. Others write through views, functions, procedures and triggers, whatever verb they begin with (SET STATEMENT … FOR UPDATE, ANALYZE UPDATE).
var naming = regexp.MustCompile(`(?s)^\s*(/\*[^!m].*?\*/\s*)?(` + strings.Join([]string{
	`(create|drop|alter)\s+(or\s+replace\s+)?(database|schema)\b`,
	`create\s+(or\s+replace\s+)?(temporary\s+)?table\b`, // but for one with a query: see onlyNamed
	`alter\s+(online\s+)?(ignore\s+)?table\b`, `drop\s+(temporary\s+)?tables?\b`, `truncate\b`, `rename\s+(tables?|user)\b`,
	`create\s+(or\s+replace\s+)?((unique|fulltext|spatial)\s+)?index\b`, `drop\s+index\b`,
	`(create|drop|alter)\s+(or\s+replace\s+)?(algorithm\s*=\s*\w+\s+)?(definer\s*=\s*\S+\s+)?(sql\s+security\s+\w+\s+)?(aggregate\s+)?` +
		`(view|procedure|function|package|trigger|event|user|role|server|sequence)\b`,
	`(analyze|optimize|repair)\s+((local|no_write_to_binlog)\s+)?(tables?|view)\b`, `flush\b`, `(grant|revoke)\b`, `set\s+(password|default\s+role)\b`,
}, "|") + `)`)

var (
	definesTable = regexp.MustCompile(`(?s)^\s*(/\*.*?\*/\s*)?create\s+(or\s+replace\s+)?(temporary\s+)?table\b`)
	query        = regexp.MustCompile(`\b(select|values)\b`)
)

// temporary is what the server writes when a session ends that had a temporary table.
const temporary = "drop /*!40005 temporary */ table"

// onlyNamed reports whether a statement, in small letters, is known to write nothing but what it names.
func onlyNamed(text string) bool {
	text = strings.Replace(text, temporary, "drop temporary table", 1)
	if strings.Contains(text, "/*!") || strings.Contains(text, "/*m!") { // it runs what is in there
		return false
	}
	return naming.MatchString(text) && !(definesTable.MatchString(text) && query.MatchString(text))
}
