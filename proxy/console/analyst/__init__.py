"""The analyst's pages: what may be asked about, a builder with its price, answers, what was asked, and monitors."""
