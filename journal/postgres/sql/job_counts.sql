-- job_counts: the number of jobs by state.
SELECT state, count(*) FROM jobs GROUP BY state
