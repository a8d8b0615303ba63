package postgres

import "time"

// class is one of the classes of retention (W11): a range of the jobs' numbers, so that
// a partition holds jobs that are kept for about as long.
type class struct {
	name string
	// longest is the longest time that a job of the class is kept once it has closed,
	// and every how long its partitions last, so that there are few of them at a time:
	// each statement that looks into the history plans for all. 0: for good.
	longest, every time.Duration
}

const day = 24 * time.Hour

// classes are numbered as their sequences are in write_jobs_new.
var classes = []class{
	{name: "never"},
	{"days", 10 * day, 2 * day},
	{"months", 100 * day, 15 * day},
	{"years", 3650 * day, 365 * day}, // flow.MaxExpire
}

// classNumbers is how many numbers a class has.
const classNumbers = 100_000_000_000_000_000

// classOf is the class of a job that is kept so long.
func classOf(keep time.Duration) int {
	for i := 1; keep > 0 && i < len(classes); i++ {
		if keep <= classes[i].longest {
			return i
		}
	}
	return 0
}

// sequence is what the numbers of a class are drawn from.
func (c *class) sequence() string { return "numbers_" + c.name }

// classOfPart is the class that a partition is of.
func classOfPart(p int64) int { return int(p / (classNumbers / partitionJobs)) }
