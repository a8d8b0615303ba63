// Package spans makes the tree of spans of a job from its journal (O1, O2).
//
// A span's id follows from the message, the instance or the job that it is about, and the
// trace's id from the job, or from the traceparent that its starter had. So every process
// names the same parents, and the tree is whole whatever was killed. A span that has ended
// is the same whenever it is made: to send it again changes nothing.
//
// A Builder takes the entries of one job: first the main chain, then the effect chains.
// Tree returns the spans, parents first:
//
//	job
//	  activity                one for each instance, and for each pass of a pivot
//	    dispatch              from when its Leg1 was sent until it was handled
//	      step …              with the digits of the message before and after it
//	    attempt               from when a request is due until its response
//	      queued, run         of the worker's run
//	      effect …
//	    backoff, wait, child  time in which nothing runs here
//	    response              with its steps
//
// The package is pure.
package spans
