-- flow_schedules: the active versions, with the time up to which scheduled starts were made, and the clock (J5).
SELECT name, version, digest, scheduled, (SELECT micros()) FROM flows WHERE active ORDER BY name
