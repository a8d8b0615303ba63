package postgres

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

// statements are the embedded statements by the name of their file.
var statements = readStatements()

func readStatements() map[string]string {
	files, err := sqlFiles.ReadDir("sql")
	if err != nil {
		panic(fmt.Sprintf("postgres: embedded statements: %v", err))
	}
	all := make(map[string]string, len(files))
	for _, f := range files {
		text, err := sqlFiles.ReadFile("sql/" + f.Name())
		if err != nil {
			panic(fmt.Sprintf("postgres: embedded statement %s: %v", f.Name(), err))
		}
		all[strings.TrimSuffix(f.Name(), ".sql")] = string(text)
	}
	return all
}
