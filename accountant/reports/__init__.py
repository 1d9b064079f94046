"""accountant reports."""
