-- signal_known: what became of a signal from outside (1.4). $1 GUID.
SELECT state FROM signals WHERE guid = $1::uuid
