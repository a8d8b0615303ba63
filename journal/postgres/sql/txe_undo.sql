-- txe_undo: undoes what was done since the savepoint of a Tx effect, settings as well.
ROLLBACK TO SAVEPOINT quipu_effect
