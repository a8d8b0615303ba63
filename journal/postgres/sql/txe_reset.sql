-- txe_reset: takes back every setting of a Tx effect, for its connection and for what follows in its transaction.
RESET ALL
