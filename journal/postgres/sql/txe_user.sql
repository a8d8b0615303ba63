-- txe_user: takes back a change of user by a Tx effect, and with it of the role.
RESET SESSION AUTHORIZATION
