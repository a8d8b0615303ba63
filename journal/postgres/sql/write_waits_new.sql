-- write_waits_new: registers waits, under the locks of their mailboxes (J3). $1 jobs, $2 GUIDs, $3 mailboxes, $4 activities, $5 addresses, $6 topics, $7 keys, $8 repeat, $9 maximal ages, $10 counts, $11 times, $12 origins, $13 requests, null for hooks. A second one is 23505.
INSERT INTO waits (job, guid, mailbox, activity, dad, topic, key, repeat, max_age, count, since, origin, request)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bool[],
                     $9::int8[], $10::int8[], $11::int8[], $12::int8[], $13::uuid[])
