-- audit_woken: what the durable functions of a job waited for, and has come (E12). $1 job.
SELECT w.request, w.guid, w.kind, w.name, w.position, w.seq FROM woken w WHERE w.job = $1::uuid
