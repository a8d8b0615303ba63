package postgres

import (
	"embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// statements are the embedded statements by name. A connection prepares one when it sends it first:
// most connections, such as that of one command, need few.
//
// A file of sql/ has the statements of one topic. A statement begins with the line
// "-- name: NAME". The comment lines below are its contract, and then comes its text. It is sent
// with "-- NAME: CONTRACT" as its first line, so that the server's views say what runs. {…} in a
// text stands for a list of columns (columns.go), which LIST names:
//
//	{LIST}           the names of the columns
//	{LIST:a}         what is read of them, by the alias a
//	{LIST param 3}   the parameter $3 that record writes, an array of the composite type in_LIST
//	{LIST set w}     NAME = w.NAME, for all but the keys
//	{sealed e}       an entry with what proves it, and so on: see macros
//	{i within 2}     that i is in the span of $2 and $3, see withinText
//
// The history of jobs is keyed by their n (W10). A statement that has job ids looks n up first,
// in a subquery with OFFSET 0. Then one relation gives the whole key, and the plan uses all of
// it, whatever the table statistics say.
var statements = readStatements()

// nameLine begins a statement in a file.
const nameLine = "-- name: "

func readStatements() map[string]string {
	files, err := sqlFiles.ReadDir("sql")
	if err != nil {
		panic(fmt.Sprintf("postgres: embedded statements: %v", err))
	}
	all := make(map[string]string)
	for _, f := range files {
		text, err := sqlFiles.ReadFile("sql/" + f.Name())
		if err == nil {
			err = split(string(text), all)
		}
		if err != nil {
			panic(fmt.Sprintf("postgres: embedded statements: %s: %v", f.Name(), err))
		}
	}
	return all
}

// split adds the statements of one file.
func split(file string, all map[string]string) error {
	first, rest, _ := strings.Cut("\n"+file, "\n"+nameLine)
	if strings.TrimSpace(first) != "" {
		return fmt.Errorf("what stands before the first name: %.80q", first)
	}
	for part := range strings.SplitSeq(rest, "\n"+nameLine) {
		name, text, _ := strings.Cut(part, "\n")
		if _, twice := all[name]; twice {
			return fmt.Errorf("a second statement %s", name)
		}
		contract := "-- " + name + ":"
		for strings.HasPrefix(text, "-- ") {
			var line string
			line, text, _ = strings.Cut(text, "\n")
			contract += line[2:]
		}
		body, err := expand(strings.TrimSpace(text))
		if err != nil {
			return fmt.Errorf("statement %s: %w", name, err)
		}
		all[name] = contract + "\n" + body + "\n"
	}
	return nil
}

// macros are the texts that a statement names by {NAME a} or {NAME a b}.
var macros = map[string]string{
	"sealed": sealedText,
	// The end of a test-and-set: whether as many rows were changed as the parameter with that number has.
	"changed": "CASE WHEN count(*) = cardinality($%[2]s) THEN 0 ELSE CAST('quipu: lost %[1]s, changed ' || count(*) AS int) END",
	// The number of a job: the row with that alias may know it, else the table does.
	"n": "coalesce(%[1]s.known, (SELECT j.n FROM jobs j WHERE j.id = %[1]s.job), CAST('quipu: lost job ' || %[1]s.job AS int8))",
	// Whether a job has open rows; its id comes from the row with that alias. OFFSET 0 keeps the
	// planner from turning it into a join.
	"open": `(EXISTS (SELECT FROM dispatches x WHERE x.job = %[1]s.id OFFSET 0)
    OR EXISTS (SELECT FROM waits x WHERE x.job = %[1]s.id OFFSET 0) OR EXISTS (SELECT FROM dead_letters x WHERE x.job = %[1]s.id OFFSET 0))`,
	// Whether a job, or its tombstone, has its key or was resumed, and is shown.
	"keyed": "%[1]s.next IS DISTINCT FROM '00000000-0000-0000-0000-000000000000'",
	// What a list of jobs selects: the place in the list, without jobs that another has resumed, and
	// the other parameters of job_list. coalesce(next, id) keeps the planner from reading a whole
	// index of jobs without a next.
	"between": "coalesce(%[1]s.next, %[1]s.id) = %[1]s.id AND (%[1]s.started, %[1]s.id) < ($6::int8, $7::uuid) AND (%[1]s.started, %[1]s.id) >= ($5::int8, $10::uuid)",
	"fits":    "(cardinality($1::text[]) = 0 OR %[1]s.state = ANY ($1::text[])) AND ($2::text = '' OR %[1]s.flow_name = $2::text) AND " + narrow,
	"narrow":  narrow,
	// Whether compensations of a request have run or will run; the first word is the alias of its
	// job.
	"undone": "(" + undo + "'completed' OFFSET 0) OR " + undoJob + " OFFSET 0) OR " + undoOrdered + ")",
	// Whether a job that runs these compensations has not ended.
	"undoing": "(" + undoJob + " AND x.state IN ('open', 'quarantined') OFFSET 0) OR " + undoOrdered + ")",
}

// narrow is what the index of standing jobs does not have.
const narrow = "($3::text = '' OR %[1]s.flow_version = $3::text) AND starts_with(%[1]s.key, $4::text) AND " +
	"CASE WHEN cardinality($9::text[]) = 0 THEN true WHEN %[1]s.state = 'open' THEN job_waits(%[1]s.id, ($9::text[])[1], ($9::text[])[2]) ELSE false END"

const (
	undo    = "EXISTS (SELECT FROM effects x WHERE x.n = %[1]s.n AND x.request = %[2]s AND x.class = 'undo' AND x.state = "
	undoJob = "EXISTS (SELECT FROM jobs x WHERE x.parent_job = %[1]s.id AND x.flow_name = 'quipu_undo' AND x.parent_leg1 = %[2]s"
	// undoOrdered says whether such a job is ordered; only the sender of its row tells that.
	undoOrdered = undo + "'started' OFFSET 0) AND EXISTS (SELECT FROM dispatches x WHERE x.sender = %[1]s.id AND x.undo OFFSET 0)"
)

// withinText says that a row of the history is in a span. The server opens only the partitions of the
// span when it begins a statement; without it, all of them, whatever rows are asked for.
const withinText = "%s.n BETWEEN $%d::int8 AND $%d::int8"

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// expand replaces the names of lists in a text by their columns.
func expand(text string) (string, error) {
	var broken error
	text = placeholder.ReplaceAllStringFunc(text, func(s string) string {
		out, err := listed(s[1 : len(s)-1])
		if err != nil {
			broken = fmt.Errorf("%s: %w", s, err)
		}
		return out
	})
	return text, broken
}

func listed(s string) (string, error) {
	name, alias, read := strings.Cut(s, ":")
	words := strings.Fields(name)
	if len(words) == 3 && words[1] == "within" {
		n, err := strconv.Atoi(words[2])
		return fmt.Sprintf(withinText, words[0], n, n+1), err
	}
	if len(words) > 1 && macros[words[0]] != "" {
		return strings.NewReplacer("%[1]s", words[1], "%[2]s", words[len(words)-1]).Replace(macros[words[0]]), nil
	}
	if len(words) == 0 || lists[words[0]] == nil {
		return "", fmt.Errorf("there is no such list of columns")
	}
	l := lists[words[0]]
	switch {
	case len(words) == 1 && read:
		return l.reads(alias), nil
	case len(words) == 1:
		return l.names(), nil
	case len(words) == 3 && !read && words[1] == "set":
		return l.sets(words[2]), nil
	case len(words) == 3 && !read && words[1] == "param":
		n, err := strconv.Atoi(words[2])
		return l.placeholder(n), err
	}
	return "", fmt.Errorf("neither names, nor what is read, nor param, nor set")
}
