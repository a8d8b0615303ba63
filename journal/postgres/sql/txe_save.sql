-- txe_save: the savepoint of a Tx effect (E3): what its body does is undone to it.
SAVEPOINT quipu_effect
