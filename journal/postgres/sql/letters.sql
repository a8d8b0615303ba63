-- letters: dead letters, newest first (E10). $1 ended ones too, $2 limit.
SELECT l.id, l.job, l.guid, l.kind, l.activity, l.dad, l.reason, l.message, l.ledger, l.at, l.state, coalesce(j.key, '')
FROM dead_letters l LEFT JOIN jobs j ON j.id = l.job
WHERE $1::bool OR l.state = 'open'
ORDER BY l.id DESC
LIMIT $2::int8
