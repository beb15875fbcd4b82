"""The audit log: who changed what, written in the transaction of the change."""
