-- A partition of each table of the jobs' history (W10), for the jobs with n from {from} to below {to}. It is made
-- as a table and then attached, which does not hold up readers and writers of the others. Storage parameters are
-- set here, since a partition inherits none; constraints, indexes and the storage of columns come from the table. Nobody may
-- use the type of one, by which it could be kept from being dropped.
CREATE TABLE entries_{p} (LIKE entries INCLUDING ALL) WITH (fillfactor = 100, toast_tuple_target = 4096);
ALTER TABLE entries ATTACH PARTITION entries_{p} FOR VALUES FROM ({from}) TO ({to});
CREATE TABLE receipts_{p} (LIKE receipts INCLUDING ALL) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE receipts ATTACH PARTITION receipts_{p} FOR VALUES FROM ({from}) TO ({to});
CREATE TABLE instances_{p} (LIKE instances INCLUDING ALL) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE instances ATTACH PARTITION instances_{p} FOR VALUES FROM ({from}) TO ({to});
CREATE TABLE effects_{p} (LIKE effects INCLUDING ALL) WITH (fillfactor = 55);
ALTER TABLE effects ATTACH PARTITION effects_{p} FOR VALUES FROM ({from}) TO ({to});
CREATE TABLE payloads_{p} (LIKE payloads INCLUDING ALL);
ALTER TABLE payloads ATTACH PARTITION payloads_{p} FOR VALUES FROM ({from}) TO ({to});
CREATE TABLE resolved_waits_{p} (LIKE resolved_waits INCLUDING ALL);
ALTER TABLE resolved_waits ATTACH PARTITION resolved_waits_{p} FOR VALUES FROM ({from}) TO ({to});
REVOKE ALL ON TYPE entries_{p} FROM PUBLIC;
REVOKE ALL ON TYPE receipts_{p} FROM PUBLIC;
REVOKE ALL ON TYPE instances_{p} FROM PUBLIC;
REVOKE ALL ON TYPE effects_{p} FROM PUBLIC;
REVOKE ALL ON TYPE payloads_{p} FROM PUBLIC;
REVOKE ALL ON TYPE resolved_waits_{p} FROM PUBLIC;
INSERT INTO partitions (p, live) VALUES ({p}, {from});
