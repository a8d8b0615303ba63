-- name: gauge_jobs
-- counts the open and the quarantined jobs of each deployed flow, by the index on them (O4). $1 flows, $2 jobs that
-- are counted of each flow and state.
SELECT f.name, s.state,
       (SELECT count(*) FROM (SELECT FROM jobs j WHERE j.flow_name = f.name AND j.state = s.state
                              AND CASE WHEN j.state IN ('open', 'failed', 'interrupted', 'quarantined') THEN true END LIMIT $2::int8) AS n)
FROM (SELECT name FROM flows WHERE active AND name >= '' ORDER BY name LIMIT $1::int8) AS f CROSS JOIN (VALUES ('open'), ('quarantined')) AS s (state)

-- name: gauge_closed
-- estimates the closed jobs of the same flows by state, from a sample of the pages of jobs (O4): mostly the same pages
-- each time, so that the numbers do not jump and the pages are in memory. $1 flows, $2 pages.
SELECT c.flow_name, c.state, round(count(*) / s.share)::int8
FROM (SELECT least(1, $2::int8 * current_setting('block_size')::float8 / greatest(pg_relation_size('jobs'), 1)) AS share OFFSET 0) AS s
CROSS JOIN LATERAL (
    SELECT j.flow_name, j.state FROM jobs j TABLESAMPLE SYSTEM (100 * s.share) REPEATABLE (0)
    WHERE j.state IN ('completed', 'failed', 'interrupted')
) AS c
WHERE c.flow_name IN (SELECT name FROM flows WHERE active AND name >= '' ORDER BY name LIMIT $1::int8)
GROUP BY c.flow_name, c.state, s.share

-- name: gauge_running
-- counts the requests that processes hold, by topic (O4), and says how many microseconds ago the oldest of each was
-- sent. There are no more than the processes have slots. OFFSET 0 looks each session up in the index of what it holds. $1
-- topics.
SELECT d.topic, count(*), coalesce(greatest(0, micros() - min(d.published_at)), 0)
FROM sessions s CROSS JOIN LATERAL (
    SELECT r.topic, r.published_at FROM dispatches r WHERE r.session = s.id AND r.holder IS NOT NULL AND r.kind = 'request' OFFSET 0
) AS d
GROUP BY d.topic ORDER BY count(*) DESC, d.topic
LIMIT $1::int8

-- name: gauge_lost
-- counts the requests whose attempt lost two runs or more with their process (E9), by topic: those that processes hold,
-- and among the $1 rows that are due first, within a minute, those that wait: such a row is due at once. Returns of each
-- topic the most runs of one request, and its job. $2 topics.
SELECT d.topic, count(*), max(d.lost), (array_agg(d.job ORDER BY d.lost DESC, d.job))[1]
FROM (
    SELECT h.topic, h.job, h.runs - 1 AS lost
    FROM sessions s CROSS JOIN LATERAL (
        SELECT r.topic, r.job, r.runs FROM dispatches r WHERE r.session = s.id AND r.holder IS NOT NULL AND r.kind = 'request' OFFSET 0
    ) AS h
    UNION ALL
    SELECT w.topic, w.job, w.runs
    FROM (SELECT micros() AS now OFFSET 0) AS c
    CROSS JOIN LATERAL (
          SELECT r.kind, r.topic, r.job, r.runs FROM dispatches r
          WHERE r.held IS NULL AND r.next_at IS NOT NULL AND r.next_at <= c.now + 60000000 ORDER BY r.next_at LIMIT $1::int8) AS w
    WHERE w.kind = 'request'
) AS d
WHERE d.lost >= 2
GROUP BY d.topic ORDER BY count(*) DESC, d.topic
LIMIT $2::int8

-- name: gauge_dead
-- counts open dead letters by reason (O4). $1 letters that are counted, $2 reasons.
SELECT l.reason, count(*)
FROM (SELECT reason FROM dead_letters WHERE CASE WHEN state = 'open' THEN true END AND reason >= '' LIMIT $1::int8) AS l
GROUP BY l.reason ORDER BY count(*) DESC, l.reason
LIMIT $2::int8

-- name: gauge_processes
-- counts the live processes by role (O4).
SELECT r.role, count(*)
FROM sessions s CROSS JOIN micros() AS now CROSS JOIN unnest(s.roles) AS r (role)
WHERE NOT s.dead AND s.renewed_at > now - s.lease
GROUP BY r.role

-- name: gauge_late
-- counts what is late, and says since when (O4): rows that are due, timers among them, and jobs and tombstones whose
-- time has passed. $1 how many of each are counted. Returns six numbers: each count with the microseconds since the
-- oldest became due, null for none.
SELECT d.rows, c.now - d.first, d.timers, c.now - d.timer,
       e.jobs, c.now - e.first
FROM (SELECT micros() AS now OFFSET 0) AS c
CROSS JOIN LATERAL (
    SELECT count(*) AS rows, min(w.next_at) AS first,
           count(*) FILTER (WHERE w.timer) AS timers, min(w.next_at) FILTER (WHERE w.timer) AS timer
    FROM (SELECT r.next_at, r.kind = 'wakeup' AND r.publication = 0 AS timer
          FROM dispatches r LEFT JOIN jobs j ON j.id = r.job
          WHERE r.held IS NULL AND r.next_at IS NOT NULL AND r.next_at <= c.now AND j.state IS DISTINCT FROM 'quarantined'
          ORDER BY r.next_at LIMIT $1::int8) AS w
) AS d
CROSS JOIN LATERAL (
    SELECT count(*) AS jobs, min(x.expires_at) AS first
    FROM (SELECT j.expires_at FROM jobs j WHERE j.expires_at IS NOT NULL AND j.expires_at <= c.now ORDER BY j.expires_at LIMIT $1::int8) AS x
) AS e
