"""The inference core: no screen, only the flow of data.

    prompt → tokens → embeddings → layers → logits → stages → choice → next step
             tokens   ──────── engine (Forward) ──────┘ decode (Choice) ┘
                                   └───────────── StepTrace ────────────┘→ Generation
"""
