-- txe_unlock: ends the advisory locks that a Tx effect left on its connection.
SELECT pg_advisory_unlock_all()
