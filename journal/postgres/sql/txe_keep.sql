-- txe_keep: ends the body of a Tx effect; an error where its transaction is not the one that it began in.
RELEASE SAVEPOINT quipu_effect
