"""Rules between the keys of a policy, whatever the source contains: one file for each part of the policy.

A rule yields the faults that it finds, each with its dotted key, and raises nothing. `document` applies the rules in
order. They judge a `PolicyDocument`, and may import the catalog, the parser and the policy's sections.
"""
