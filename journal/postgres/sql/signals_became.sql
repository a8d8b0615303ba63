-- signals_became: what became of signals, where they came from outside. $1 GUIDs, $2 states.
UPDATE signals s SET state = w.state FROM unnest($1::uuid[], $2::text[]) AS w (guid, state) WHERE s.guid = w.guid
