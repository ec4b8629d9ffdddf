"""The reproduction: one test module a table, the published figures beside it, and what is drawn from the
records.
"""
