"""How ranks talk to each other: one small interface, and what implements it."""
