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

// statements are the embedded statements by name.
//
// A file of sql/ has the statements of one topic. A statement begins with the line
// "-- name: NAME". The comment lines below are its contract, and then comes its text. It is sent
// with "-- NAME: CONTRACT" as its first line, so that the server's views say what runs. {…} in a
// text stands for a list of columns (columns.go), which LIST names:
//
//	{LIST}           the names of the columns
//	{LIST:a}         what is read of them, by the alias a
//	{LIST param 3}   the parameter $3 that list.param gives, an array of the composite type in_LIST
//	{LIST set w}     NAME = w.NAME, for all but the keys
//	{sealed e}       an entry with what proves it, see sealedText
//	{n w}            the number of the job w.job, see numberText
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

// numberText is the number of a job: the row with that alias may know it, else the table does.
const numberText = "coalesce(%[1]s.known, (SELECT j.n FROM jobs j WHERE j.id = %[1]s.job), CAST('quipu: lost job ' || %[1]s.job AS int8))"

// withinText says that a row of the history is in a span. The server opens only the partitions of the
// span when it begins a statement; without it, all of them, whatever rows are asked for.
const withinText = "%s.n BETWEEN $%d::int8 AND $%d::int8"

// openText says whether a job has open rows; its id comes from the row with that alias. OFFSET 0
// keeps the planner from turning it into a join.
const openText = `(EXISTS (SELECT FROM dispatches x WHERE x.job = %[1]s.id OFFSET 0)
    OR EXISTS (SELECT FROM waits x WHERE x.job = %[1]s.id OFFSET 0) OR EXISTS (SELECT FROM dead_letters x WHERE x.job = %[1]s.id OFFSET 0))`

// undone says whether compensations of a request have run or will run; job is the alias of its
// job.
func undone(job, request string) string {
	return "(" + undo(job, request, "completed") + " OR " + undoJob(job, request, "") + " OR " + undoOrdered(job, request) + ")"
}

// undoing says whether a job that runs these compensations has not ended.
func undoing(job, request string) string {
	return "(" + undoJob(job, request, " AND x.state IN ('open', 'quarantined')") + " OR " + undoOrdered(job, request) + ")"
}

func undo(job, request, state string) string {
	return fmt.Sprintf(`EXISTS (SELECT FROM effects x WHERE x.n = %s.n AND x.request = %s AND x.class = 'undo' AND x.state = '%s' OFFSET 0)`, job, request, state)
}

func undoJob(job, request, state string) string {
	return fmt.Sprintf(`EXISTS (SELECT FROM jobs x WHERE x.parent_job = %s.id AND x.flow_name = 'quipu_undo' AND x.parent_leg1 = %s%s OFFSET 0)`, job, request, state)
}

// undoOrdered says whether such a job is ordered; only the sender of its row tells that.
func undoOrdered(job, request string) string {
	return undo(job, request, "started") + fmt.Sprintf(` AND EXISTS (SELECT FROM dispatches x WHERE x.sender = %s.id AND x.undo OFFSET 0)`, job)
}

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
	if len(words) == 2 && words[0] == "open" {
		return fmt.Sprintf(openText, words[1]), nil
	}
	if len(words) == 2 && words[0] == "sealed" {
		return fmt.Sprintf(sealedText, words[1]), nil
	}
	if len(words) == 2 && words[0] == "n" {
		return fmt.Sprintf(numberText, words[1]), nil
	}
	if len(words) == 3 && words[1] == "within" {
		n, err := strconv.Atoi(words[2])
		return fmt.Sprintf(withinText, words[0], n, n+1), err
	}
	if len(words) == 3 && words[0] == "undone" {
		return undone(words[1], words[2]), nil
	}
	if len(words) == 3 && words[0] == "undoing" {
		return undoing(words[1], words[2]), nil
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
