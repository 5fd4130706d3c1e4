"""The decision service: decide over HTTP now, learn whenever the reward comes, lose nothing that was acknowledged.

A thin layer over `belated.decisions`: requests are parsed strictly (`_bodies`), queued for the one thread that writes
(`_writer`), stored in one commit with whatever else is waiting, and answered after that commit (`_app`).
"""
