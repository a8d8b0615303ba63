-- write_letters_end: ends the open dead letters of rows whose answer came after all (E10). $1 jobs, $2 GUIDs.
UPDATE dead_letters l
SET state = 'answered'
FROM unnest($1::uuid[], $2::uuid[]) AS w (job, guid)
WHERE l.job = w.job AND l.guid = w.guid AND l.state = 'open'
