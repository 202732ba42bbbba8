"""Methods x recipes x offers to plans, and the reasons why the rest was rejected."""
