// Command bench measures Quipu as a user calls it: callers in closed loops, each of
// which starts a job and waits for its end before it starts the next. The handler does
// nothing. All is on one machine: this process with an embedded NATS server on files,
// and a private Postgres with fsync=on and synchronous_commit=on. -only names parts of
// the report, -scale makes them smaller, -plot draws two of them.
//
//	floors     what the database alone costs, see below
//	w1, w10    jobs of one step and of ten, with 1, 200 and 1000 callers; W10 also all
//	           by JetStream, and without the states that a process keeps
//	fan        jobs of a hundred activities at once
//	function   durable functions of ten calls, beside the same function without calls
//	signals, trees, long
//	           signals, awaits, and one long job, beside W10
//	steady     W10 with 200 000 jobs in the tables beside none, and its WAL; rounds of
//	           it with a checkpoint before every second
//	processes  three processes beside one, with the same callers and cores
//	kill       the longest pause of a job when one of two worker processes is killed
//	idle       what a process asks of the database when there is nothing to do
//	backlog    jobs that were all started before there was a process to run them
//	console    what the console's pages take and weigh on a million jobs, and the page of
//	           a job of 10 000 elements
//	plot       the rate over the jobs that are stored, the time of a job over the callers
//
// Each loop has a runtime and a space of its own, and begins warm. Below its line stand
// the times of a job, and what a step costs: WAL, rows, and CPU of this process and of
// Postgres. It says there when others used the machine: such a figure is to be measured
// again.
//
// Floor (a) writes the rows of W10 with one transaction per step on 32 connections;
// floor (b) writes them in batches of 100 without any protocol; floor (c) is floor (a)
// on one connection, for what one step waits at least. Absolute figures depend on the
// machine; the ratios are what counts.
//
// Where the aim is a multiple of a peer's figure, the figure here is one half of a
// ratio. The other is the peer's with the same callers and jobs, on the same Postgres
// (-postgres, a database of its own for each; it keeps 2 GB of its WAL, wal_keep_size,
// from which rows and commits are counted), the two by turns and several times.
package main
