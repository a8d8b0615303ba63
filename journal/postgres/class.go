package postgres

import "time"

// class is a class of retention (W11): a range of job numbers, so that the jobs of one partition
// are kept for about the same time.
type class struct {
	name string
	// longest is the longest time that a closed job of the class is kept; 0: for good. every is
	// how long a partition takes jobs. It is long, so that there are few partitions: a
	// statement on the history whose span is not known opens all of them.
	longest, every time.Duration
}

const day = 24 * time.Hour

// classes stand in the order of the sequences in write_jobs_new.
var classes = []class{
	{name: "never"},
	{"days", 10 * day, 2 * day},
	{"months", 100 * day, 15 * day},
	{"years", 3650 * day, 365 * day}, // flow.MaxExpire
}

// classNumbers is how many numbers a class has.
const classNumbers = 100_000_000_000_000_000

// classOf returns the class of a job that is kept for that time.
func classOf(keep time.Duration) int {
	for i := 1; keep > 0 && i < len(classes); i++ {
		if keep <= classes[i].longest {
			return i
		}
	}
	return 0
}

// sequence names the sequence that the numbers of the class are drawn from.
func (c *class) sequence() string { return "numbers_" + c.name }

// classOfPart returns the class of a partition.
func classOfPart(p int64) int { return int(p / (classNumbers / partitionJobs)) }
