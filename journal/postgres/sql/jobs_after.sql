-- jobs_after: a page of job ids in their order. $1 the last of the page before, $2 limit.
SELECT id FROM jobs WHERE id > $1::uuid ORDER BY id LIMIT $2::int8
