-- write_kept_due: makes the signals due that were kept, and not past their time, in mailboxes where a wait was registered, under their locks (J3). $1 mailboxes.
UPDATE dispatches
SET held = NULL, next_at = micros()
WHERE job = ANY ($1::uuid[]) AND kind = 'signal' AND held = 'kept' AND coalesce(within_at > micros(), true)
