-- flow_list: the deployed versions.
SELECT name, version, digest, active, deployed FROM flows ORDER BY name, deployed, version
