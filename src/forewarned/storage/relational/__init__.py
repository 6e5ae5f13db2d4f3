"""The SQL that SQLite and PostgreSQL share, written once.

A database has to do three things (`database.py`): answer a question, write rows, and say how it
spells what the two spell differently. Questions are in `snapshot` and the modules it is made of,
writes in `transaction`. What only one of the two can do is in that one's own package.
"""
