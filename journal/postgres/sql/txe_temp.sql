-- txe_temp: drops the temporary tables that a Tx effect left on its connection.
DISCARD TEMP
