-- expire_done: notes of tombstones that nothing is left of them. $1 jobs.
WITH clean AS MATERIALIZED (
    SELECT w.id FROM unnest($1::uuid[]) AS w (id)
    WHERE NOT EXISTS (SELECT FROM entries x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM instances x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM receipts x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM dispatches x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM waits x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM woken x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM effects x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM payloads x WHERE x.job = w.id)
      AND NOT EXISTS (SELECT FROM dead_letters x WHERE x.job = w.id)
), current AS (
    UPDATE jobs j SET expires_at = NULL FROM clean WHERE j.id = clean.id AND j.state = 'expired'
)
UPDATE tombs t SET expires_at = NULL FROM clean WHERE t.id = clean.id
