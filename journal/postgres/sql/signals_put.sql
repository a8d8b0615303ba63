-- signals_put: records a signal from outside. $1 GUID, $2 state. A second one is 23505.
INSERT INTO signals (guid, state, at) VALUES ($1::uuid, $2::text, micros())
