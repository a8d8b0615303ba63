-- txe_role: takes back a change of role by a Tx effect.
RESET ROLE
