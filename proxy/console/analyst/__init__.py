"""The analyst's pages: the catalog, a builder of questions with their price, answers, past questions, and monitors."""
