"""The parts of a report page, inlined into every report.

page.html.jinja     the page; nothing in it loads anything from elsewhere
style.css           light and dark, wide and narrow
figures.js          draws the figures that `curves.py` and `plots.py` describe
uplot.js uplot.css  uPlot 1.6.32 (github.com/leeoniya/uPlot), unmodified dist/uPlot.iife.min.js and
                    dist/uPlot.min.css of the npm package; MIT, uplot-licence.md. 53 KB, where Plotly would put
                    4.8 MB and Vega-Lite 0.8 MB into every report.
"""
