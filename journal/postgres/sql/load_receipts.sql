-- load_receipts: receipts by primary key; while steps are open also the entry that accepted the message, a start's excepted (1.7). $1 jobs, $2 GUIDs. Returns the place in the arrays from 1, and the row.
SELECT w.n, r.ledger, r.verdict, r.seq,
       CASE WHEN r.verdict = 'handled' AND r.guid <> r.job
                 AND NOT (r.ledger / 1000000000 % 10 = 1
                          AND (r.ledger / 100000000000 = 0 OR r.ledger / 100000000 % 10 = 1))
            THEN (SELECT e.body FROM entries e
                  WHERE e.job = r.job AND e.chain = '00000000-0000-0000-0000-000000000000' AND e.seq = r.seq)
       END
FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS w (job, guid, n)
JOIN receipts r ON r.job = w.job AND r.guid = w.guid
