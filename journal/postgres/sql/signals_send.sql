-- signals_send: records a signal from outside that is still to be delivered. $1 GUID. Returns a row when it is new; a transaction that sends the same is waited for.
INSERT INTO signals (guid, state, at) VALUES ($1::uuid, 'kept', micros()) ON CONFLICT DO NOTHING RETURNING 1
