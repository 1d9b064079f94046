"""Rules between the keys of a policy, whatever the source contains: one file for each part of the policy.

A rule gives the faults that it finds, each with the dotted key where it shows; it raises nothing. `document` puts the
rules in order. They judge a `PolicyDocument`, and may import the catalog, the parser and the policy's sections.
"""
