-- letter_read: a dead letter, and how often an operator acted on its message before (E10). $1 id.
SELECT l.job, l.guid, l.state,
       (SELECT count(*) FROM dead_letters m
        WHERE m.job = l.job AND m.guid = l.guid AND m.state IN ('retried', 'resolved', 'failed')), l.reason
FROM dead_letters l WHERE l.id = $1::int8
