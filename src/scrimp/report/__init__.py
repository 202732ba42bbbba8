"""One self-contained HTML file per run: what was bought, what it cost, and how well it was forecast.

`page.py` is the way in. `curves.py` and `plots.py` describe figures (`figure.py`), `words.py` makes sentences and
`tables.py` table rows; `assets/` holds the page itself and draws the figures in the browser.
"""
