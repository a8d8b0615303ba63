-- txe_cursors: closes the cursors that a Tx effect left on its connection.
CLOSE ALL
