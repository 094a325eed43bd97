"""The live page: what an observer hears, in a browser. `pip install rvq[web]`, then `rvq top --web`.

Owns the server, who may see it, and the page itself (static/). It says nothing on the bus; the actions are asked of
whoever is handed in.
"""
