-- chain_head: the last entry of a chain whose row has gone, under the job's lock (J8). $1 job, $2 chain.
SELECT seq, hash FROM entries WHERE job = $1::uuid AND chain = $2::uuid ORDER BY seq DESC LIMIT 1
