-- write_mailboxes: locks mailboxes until the end of the transaction, in the order given: who registers a wait and who delivers a signal cannot miss each other (J3). $1 lock keys, sorted.
SELECT count(pg_advisory_xact_lock(k)) FROM unnest($1::int8[]) AS w (k)
