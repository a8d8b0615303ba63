package journal

import (
	"fmt"
	"strconv"
	"strings"
)

// UndoPosition is the position of a pause between two runs of a compensation (3.5), which is no
// call of its function.
const UndoPosition = "undo"

const undoPrefix = "undo:"

// UndoPause refers to the pause of a request after one of its compensations has failed so often;
// "" stands for the run that was to come by all of them.
func UndoPause(compensation string, failures int) PauseRef {
	return PauseRef{Kind: PauseSleep, Name: fmt.Sprintf("%s%s:%d", undoPrefix, compensation, failures), Position: UndoPosition}
}

// Undo is the inverse of UndoPause. is is false for any other pause.
func (p PauseRef) Undo() (compensation string, failures int, is bool) {
	rest, is := strings.CutPrefix(p.Name, undoPrefix)
	last := strings.LastIndexByte(rest, ':')
	if !is || p.Kind != PauseSleep || p.Position != UndoPosition || last < 0 {
		return "", 0, false
	}
	failures, err := strconv.Atoi(rest[last+1:])
	return rest[:last], failures, err == nil
}
