-- mail_waits: the oldest open waits of mailboxes that this transaction holds, after those that it has read, with the headers of their jobs; those of quarantined jobs take nothing any more (C16). $1 mailboxes, $2 times and $3 GUIDs of the last ones read, $4 how many of each at most.
SELECT w.job, w.guid, w.activity, w.dad, w.topic, w.key, w.repeat, w.max_age, w.count, w.since, w.origin, w.request,
       b.mailbox, j.key, j.generation, j.flow_name, j.flow_version, j.flow_digest, j.trace
FROM unnest($1::uuid[], $2::int8[], $3::uuid[], $4::int8[]) AS b (mailbox, since, guid, most)
CROSS JOIN LATERAL (
    SELECT * FROM waits w
    WHERE w.mailbox = b.mailbox AND (w.since, w.guid) > (b.since, b.guid)
      AND (SELECT q.state FROM jobs q WHERE q.id = w.job) IS DISTINCT FROM 'quarantined'
    ORDER BY w.since, w.guid
    LIMIT b.most
) AS w
LEFT JOIN jobs j ON j.id = w.job
ORDER BY b.mailbox, w.since, w.guid
