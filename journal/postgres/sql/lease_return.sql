-- lease_return: a drained run takes its run back, and the row is due at once (E9). $1 job, $2 request, $3 turn, $4 fence, $5 holder. Returning twice counts once.
UPDATE dispatches d
SET runs = CASE WHEN d.holder IS NULL THEN d.runs ELSE greatest(d.runs - 1, 0) END,
    holder = NULL, lease_until = NULL, next_at = CASE WHEN d.held IS NULL THEN micros() ELSE d.next_at END
WHERE d.job = $1::uuid AND d.guid = $2::uuid AND d.kind = 'request' AND d.turn = $3::int8 AND d.fence = $4::int8
  AND (d.holder IS NULL OR d.holder = $5::text)
RETURNING 1
