-- schema_version: the version and name of the space, read before anything else.
SELECT version, name FROM space
