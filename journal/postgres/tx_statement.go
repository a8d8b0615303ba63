package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// refused are the first words of statements that the body of a Tx effect may not run: they begin,
// end or divide its transaction, or belong to the session. The extended protocol takes one
// statement per text, so the first word is enough. Procedures and DO blocks cannot end a
// transaction that they were called in.
var refused = map[string]string{
	"begin": transactional, "start": transactional, "commit": transactional, "end": transactional,
	"rollback": transactional, "abort": transactional,
	"savepoint": "use Savepoint", "release": "use Savepoint",
	"copy":    "use CopyFrom, or a query",
	"prepare": sessional, "deallocate": sessional, "discard": sessional, "listen": sessional, "unlisten": sessional,
}

const (
	transactional = "the transaction commits with the effect, and rolls back with its error"
	sessional     = "the connection is shared"
)

// allowed refuses statements and options that a body may not use.
func allowed(sql string, args []any) error {
	if why := refused[firstWord(sql)]; why != "" {
		return misuse("%s in %.80q: %s", strings.ToUpper(firstWord(sql)), sql, why)
	}
	for _, a := range args {
		switch a := a.(type) {
		case pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.NamedArgs, pgx.StrictNamedArgs:
		case pgx.QueryExecMode:
			if a == pgx.QueryExecModeSimpleProtocol {
				return misuse("the simple protocol takes several statements")
			}
		case pgx.QueryRewriter:
			return misuse("a query rewriter of type %T: give the statement as it is", a)
		default:
			return nil // options come first
		}
	}
	return nil
}

// firstWord returns the first word of a statement in lower case, after whatever the server's
// grammar skips.
func firstWord(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v;")
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			sql = afterComment(sql)
		default:
			end := strings.IndexFunc(sql, func(r rune) bool {
				return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_'
			})
			if end < 0 {
				end = len(sql)
			}
			return strings.ToLower(sql[:end])
		}
	}
}

// afterComment returns what follows a /* */ comment, which may be nested.
func afterComment(sql string) string {
	depth := 0
	for i := 0; i+1 < len(sql); i++ {
		switch sql[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			i++
			if depth--; depth == 0 {
				return sql[i+1:]
			}
		}
	}
	return ""
}
