-- load_tombs: which of the ids are those of tombstones whose key was used again (C5). $1 ids.
SELECT id FROM tombs WHERE id = ANY ($1::uuid[])
