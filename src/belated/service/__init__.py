"""The decision service: decide over HTTP now, learn whenever the reward comes, lose nothing that was acknowledged.

A thin layer over `belated.decisions`: requests are parsed strictly (`bodies`), queued for the one thread that writes
(`writer`), stored in one commit with whatever else is waiting, and answered after that commit.
"""
