"""The inference core: no screen, only the flow of data.

prompt → tokens → embeddings → layers → logits → stages → choice → next step
         tokens   ──────── engine (Forward) ──────┘ decode (Choice) ┘
                               └───────────── StepTrace ────────────┘→ Generation
"""

import os

# Before torch is imported: its spinning OpenMP barriers make a step some 20 times slower as
# soon as anything else is busy on the machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
