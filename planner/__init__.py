"""Pure text and policy to `Plan`: parse, question, minimise, sensitivity, rewrite, explain."""
