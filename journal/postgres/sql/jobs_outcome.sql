-- jobs_outcome: how jobs ended, with the entry that closed each, and the one that ran its completion tasks where that is another. $1 ids.
SELECT j.id, j.key, j.state, j.state = 'expired' OR j.tasks_seq IS NOT NULL,
       (SELECT e.body FROM entries e WHERE e.job = j.id AND e.chain = '00000000-0000-0000-0000-000000000000'
        AND e.seq = CASE WHEN j.tasks_seq IS NOT NULL THEN j.closed_seq END),
       (SELECT e.body FROM entries e WHERE e.job = j.id AND e.chain = '00000000-0000-0000-0000-000000000000'
        AND e.seq = NULLIF(j.tasks_seq, j.closed_seq))
FROM jobs j WHERE j.id = ANY ($1::uuid[])
UNION ALL
SELECT t.id, t.key, 'expired', true, NULL, NULL FROM tombs t WHERE t.id = ANY ($1::uuid[])
