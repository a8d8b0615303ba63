-- name: traces_begin
-- makes the mark, or moves it up to what is still sent by itself. $1 how long ago that may have closed. Returns it.
INSERT INTO traces (upto) VALUES (micros())
ON CONFLICT (single) DO UPDATE SET upto = greatest(traces.upto, micros() - $1::int8)
RETURNING upto

-- name: traces_ended
-- lists the ended jobs that closed after another one, first what closed first. $1 when that closed, $2 its id, $3
-- limit.
SELECT j.id, j.closed FROM jobs j
WHERE j.closed IS NOT NULL AND (j.closed, j.id) > ($1::int8, $2::uuid) AND j.tasks_seq IS NOT NULL AND j.state <> 'expired'
ORDER BY j.closed, j.id
LIMIT $3::int8

-- name: traces_sent
-- moves the mark. $1 up to which close.
UPDATE traces SET upto = $1::int8 WHERE upto < $1::int8
